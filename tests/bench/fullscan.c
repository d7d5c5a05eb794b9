/* A full scan of all nodes for each pod: four resources, taints and labels as bit masks, the spread
 * of a zone; LeastAllocated and BalancedAllocation, whose sum is 200 - 100 * the larger share, in
 * single precision, so that the compiler makes vector code of it. The best node takes the pod.
 *
 * fullscan NODES PODS: CPU seconds for each pod, and the sum of the rows chosen. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { KINDS = 4, ZONES = 3, SKEW = 5 };

static float *spare[KINDS], *share[2], *score;
static uint32_t *marks;
static int32_t *zone;

/* Taints in the low half of a node's marks, labels in the high half. */
static long pick(long nodes, const float *asked, const float *inverse, const int32_t *open) {
    for (long row = 0; row < nodes; row++) {
        int fits = (marks[row] & 0xffff) == 0 && (marks[row] >> 16 & 1) == 1;
        fits &= open[zone[row]];
        for (int kind = 0; kind < KINDS; kind++) fits &= asked[kind] <= spare[kind][row];
        float cpu = share[0][row] + asked[0] * inverse[0];
        float memory = share[1][row] + asked[1] * inverse[1];
        float fuller = cpu > memory ? cpu : memory;
        score[row] = fits ? 200.0f - 100.0f * fuller : -1.0f;
    }
    float best = -1.0f;
    for (long row = 0; row < nodes; row++) best = score[row] > best ? score[row] : best;
    if (best < 0) return -1;
    long at = 0;
    while (score[at] != best) at++;
    return at;
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    long nodes = atol(argv[1]), pods = atol(argv[2]), chosen = 0;
    static const float full[KINDS] = {4000, 32768, 102400, 110}, asked[KINDS] = {100, 500, 0, 1};
    const float inverse[2] = {1 / full[0], 1 / full[1]};
    for (int kind = 0; kind < KINDS; kind++) {
        spare[kind] = malloc(nodes * sizeof(float));
        for (long row = 0; row < nodes; row++) spare[kind][row] = full[kind];
    }
    for (int kind = 0; kind < 2; kind++) share[kind] = calloc(nodes, sizeof(float));
    score = malloc(nodes * sizeof(float));
    marks = malloc(nodes * sizeof(uint32_t));
    zone = malloc(nodes * sizeof(int32_t));
    for (long row = 0; row < nodes; row++) marks[row] = 1 << 16, zone[row] = row % ZONES;
    int32_t spread[ZONES] = {0};
    struct timespec start, end;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
    for (long pod = 0; pod < pods; pod++) {
        int32_t least = spread[0], open[ZONES];
        int spreads = pod % 10 < 3;
        for (int one = 1; one < ZONES; one++) least = spread[one] < least ? spread[one] : least;
        for (int one = 0; one < ZONES; one++) open[one] = !spreads || spread[one] + 1 - least <= SKEW;
        long at = pick(nodes, asked, inverse, open);
        if (at < 0) continue;
        for (int kind = 0; kind < KINDS; kind++) spare[kind][at] -= asked[kind];
        for (int kind = 0; kind < 2; kind++) share[kind][at] += asked[kind] * inverse[kind];
        spread[zone[at]] += spreads;
        chosen += at;
    }
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    double spent = (end.tv_sec - start.tv_sec) + (end.tv_nsec - start.tv_nsec) / 1e9;
    printf("%.9f %ld\n", spent / pods, chosen);
    return 0;
}
