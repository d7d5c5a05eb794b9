"""What all tests share: how hypothesis searches.

An example's wall time says how busy the machine is, not whether the code is right, so there are no
deadlines: what must be fast is a benchmark. A failure prints how to repeat it.
"""

from __future__ import annotations

import hypothesis

hypothesis.settings.register_profile("ordinary", deadline=None, print_blob=True)
#: ``make soak`` searches with it: the same properties, a hundred times the examples.
hypothesis.settings.register_profile("soak", deadline=None, print_blob=True, max_examples=10_000)
hypothesis.settings.load_profile("ordinary")
