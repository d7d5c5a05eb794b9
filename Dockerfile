# koordlet's image. Both stages have the same interpreter at the same path, so the environment that
# the first one fills works in the second one, which has no pip and no compiler.

# Pin it by its digest where builds must be repeatable: --build-arg PYTHON=python:3.11-slim@sha256:...
ARG PYTHON=python:3.11-slim
FROM ${PYTHON} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
WORKDIR /src
RUN python -m venv /opt/koordlet
COPY requirements.lock ./
RUN /opt/koordlet/bin/python -m pip install --no-deps --require-hashes -r requirements.lock
COPY koordlet /opt/koordlet/lib/python3.11/site-packages/koordlet
# `koordlet` as the documents have it: kubectl exec ... -- koordlet check.
RUN printf '#!/bin/sh\nexec /opt/koordlet/bin/python -P -m koordlet "$@"\n' > /opt/koordlet/bin/koordlet \
 && chmod 755 /opt/koordlet/bin/koordlet
# Byte code for everything, that is taken without a look at the source: the file system is read-only.
RUN /opt/koordlet/bin/python -m pip uninstall --yes --quiet pip setuptools \
 && find /opt/koordlet/lib -type d -name __pycache__ -prune -exec rm -rf {} + \
 && python -m compileall -q -j 0 --invalidation-mode unchecked-hash /opt/koordlet/lib

FROM ${PYTHON}
COPY --from=build /opt/koordlet /opt/koordlet
ENV PATH=/opt/koordlet/bin:$PATH PYTHONDONTWRITEBYTECODE=1
# Root: it owns the cgroup files that are the agent's job. deploy/daemonset.yaml drops the rest.
ENTRYPOINT ["/opt/koordlet/bin/python", "-P", "-m", "koordlet"]
CMD ["run"]
