/* Makes a build truly slower: after each request it burns a share of the CPU time that the request
 * cost. Compiled twice by benches/true_slowdown.rs, for the slowed build and, with a share of 0, for
 * its twin, so that both carry the same hooks.
 *
 * As it is, the library is preloaded into a server: a request begins with the message that recv()
 * returns, and its cost is what the thread used of its CPU clock until the next message.
 *
 * With -DSQLITE it stands before the real SQLite: a request is a statement, from its first
 * sqlite3_step to sqlite3_reset.
 *
 * With -DNAMED all that is burned is in one function, rqps_burn, so that counts and profiles have a
 * name for it. It burns the share, or, with -DLOOPS, so many loops of two instructions per message.
 * benches/known_cost.rs uses these.
 *
 * Given by -D: SHARE, TALLY (a file), TALLY_START (milliseconds since 1970), TALLY_BUCKETS. The file
 * holds the nanoseconds burned in each tenth of a second; -DNAMED has none.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

static inline uint64_t now(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * 1000000000ull + (uint64_t)time.tv_nsec;
}

#ifdef NAMED

__attribute__((noinline)) void rqps_burn(uint64_t loops)
{
    for (; loops; loops--)
        __asm__ volatile("");
}

#ifndef LOOPS

#define CALIBRATION 3000000ull

static double loops_per_ns;

__attribute__((constructor)) static void calibrate(void)
{
    uint64_t first = now(CLOCK_THREAD_CPUTIME_ID);
    rqps_burn(CALIBRATION);
    loops_per_ns = (double)CALIBRATION / (double)(now(CLOCK_THREAD_CPUTIME_ID) - first);
}

/* Burns the share of a cost, and returns how much that was. */
static uint64_t burn(uint64_t cost)
{
    uint64_t first = now(CLOCK_THREAD_CPUTIME_ID);
    rqps_burn((uint64_t)((double)cost * SHARE * loops_per_ns));
    return now(CLOCK_THREAD_CPUTIME_ID) - first;
}

#endif

#else

#define BUCKET_NS 100000000ull

static uint64_t *tally;

__attribute__((constructor)) static void open_tally(void)
{
    int file = open(TALLY, O_RDWR | O_CLOEXEC);
    if (file < 0)
        return;
    void *mapped = mmap(NULL, TALLY_BUCKETS * sizeof(uint64_t), PROT_READ | PROT_WRITE,
                        MAP_SHARED, file, 0);
    close(file);
    if (mapped != MAP_FAILED)
        tally = mapped;
}

/* Burns the share of a cost, and returns how much that was. */
static uint64_t burn(uint64_t cost)
{
    uint64_t length = (uint64_t)((double)cost * SHARE);
    uint64_t first = now(CLOCK_MONOTONIC), last = first;
    while (last - first < length)
        last = now(CLOCK_MONOTONIC);
    /* A loop that lost the CPU has not burned while it was away. */
    uint64_t burned = last - first < length + 200 ? last - first : length;
    uint64_t bucket = (now(CLOCK_REALTIME) - TALLY_START * 1000000ull) / BUCKET_NS;
    if (tally && bucket < TALLY_BUCKETS)
        __atomic_fetch_add(&tally[bucket], burned, __ATOMIC_RELAXED);
    return burned;
}

#endif

#ifdef SQLITE

/* rqps looks for the first in the bytes of a library, and takes its version from the others. */
__attribute__((used)) static const char symbol[] = "sqlite3_prepare_v2";
__attribute__((used)) static const char version[] = VERSION;

static int (*real_step)(void *);
static int (*real_reset)(void *);
static int (*real_finalize)(void *);
static __thread uint64_t began;

__attribute__((constructor)) static void find_real(void)
{
    void *real = dlopen(REAL, RTLD_NOW);
    if (!real)
        return;
    real_step = (int (*)(void *))dlsym(real, "sqlite3_step");
    real_reset = (int (*)(void *))dlsym(real, "sqlite3_reset");
    real_finalize = (int (*)(void *))dlsym(real, "sqlite3_finalize");
}

int sqlite3_step(void *statement)
{
    if (!began)
        began = now(CLOCK_MONOTONIC);
    return real_step(statement);
}

int sqlite3_reset(void *statement)
{
    int code = real_reset(statement);
    if (began)
        burn(now(CLOCK_MONOTONIC) - began);
    began = 0;
    return code;
}

int sqlite3_finalize(void *statement)
{
    began = 0;
    return real_finalize(statement);
}

#else

static ssize_t (*real_recv)(int, void *, size_t, int);
#ifndef LOOPS
/* The CPU clock of the thread after its last message and what was burned then. */
static __thread uint64_t paid;
#endif

__attribute__((constructor)) static void find_real(void)
{
    real_recv = (ssize_t (*)(int, void *, size_t, int))dlsym(RTLD_NEXT, "recv");
}

ssize_t recv(int socket, void *buffer, size_t length, int flags)
{
    ssize_t got = real_recv(socket, buffer, length, flags);
#ifdef LOOPS
    if (got > 0)
        rqps_burn(LOOPS);
#else
    if (got > 0) {
        uint64_t used = now(CLOCK_THREAD_CPUTIME_ID);
        uint64_t burned = paid && used > paid ? burn(used - paid) : 0;
        paid = used + burned;
    }
#endif
    return got;
}

#endif
