/* Preloaded into rqps: makes the next calls on files below a folder fail or wait, and shifts the
 * clock, as a file says that the campaign writes at its moment:
 *
 *     error OPERATION NTH ERRNO     the NTH call from now on fails
 *     room BYTES                    after so many bytes, writes find no room
 *     slow OPERATION MICROSECONDS   each call waits first
 *     clock SECONDS                 the time of day is later or earlier
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

static long calls, written;

/* By bare system calls: the functions below must not meet themselves. */
static int order(char *text, size_t size) {
    const char *path = getenv("FAULTS_ORDER");
    int fd = path ? (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0) return 0;
    long read = syscall(SYS_read, fd, text, size - 1);
    syscall(SYS_close, fd);
    text[read > 0 ? read : 0] = 0;
    return read > 0;
}

static int is_below(const char *path) {
    const char *folder = getenv("FAULTS_BELOW");
    return folder && path && strncmp(path, folder, strlen(folder)) == 0;
}

static int is_open_below(int fd) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    path[length > 0 ? length : 0] = 0;
    return is_below(path);
}

/* Tells the campaign that a call got its error. */
static int met(int error) {
    char path[4096];
    snprintf(path, sizeof path, "%s.met", getenv("FAULTS_ORDER"));
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (fd >= 0) syscall(SYS_close, fd);
    return error;
}

/* 0 for the call to go on, else the error that it gets. `room` is what may be written still. */
static int struck(const char *operation, size_t bytes, size_t *room) {
    char text[128], named[16];
    long number;
    int error;
    if (!order(text, sizeof text)) return 0;
    if (sscanf(text, "error %15s %ld %d", named, &number, &error) == 3) {
        if (strcmp(named, operation)) return 0;
        return __sync_add_and_fetch(&calls, 1) == number ? met(error) : 0;
    }
    if (room && sscanf(text, "room %ld", &number) == 1) {
        long before = __sync_fetch_and_add(&written, (long)bytes);
        if (before >= number) return met(ENOSPC);
        if (before + (long)bytes > number) *room = (size_t)(number - before);
    }
    if (sscanf(text, "slow %15s %ld", named, &number) == 2 && !strcmp(named, operation))
        usleep((useconds_t)number);
    return 0;
}

#define NEXT(name) static __typeof__(name) *next; if (!next) next = dlsym(RTLD_NEXT, #name)
#define FAIL(error) do { int why = (error); if (why) { errno = why; return -1; } } while (0)

ssize_t write(int fd, const void *from, size_t bytes) {
    NEXT(write);
    size_t room = bytes;
    if (getenv("FAULTS_ORDER") && is_open_below(fd)) FAIL(struck("write", bytes, &room));
    return next(fd, from, room);
}

int fsync(int fd) {
    NEXT(fsync);
    if (is_open_below(fd)) FAIL(struck("fsync", 0, NULL));
    return next(fd);
}

int rename(const char *from, const char *to) {
    NEXT(rename);
    if (is_below(to)) FAIL(struck("rename", 0, NULL));
    return next(from, to);
}

int mkdir(const char *path, mode_t mode) {
    NEXT(mkdir);
    if (is_below(path)) FAIL(struck("mkdir", 0, NULL));
    return next(path, mode);
}

int open64(const char *path, int flags, ...) {
    NEXT(open64);
    va_list more;
    va_start(more, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;
    va_end(more);
    if (is_below(path)) FAIL(struck(flags & O_CREAT ? "create" : "open", 0, NULL));
    return next(path, flags, mode);
}

static long shift(void) {
    char text[128];
    long seconds = 0;
    if (order(text, sizeof text)) sscanf(text, "clock %ld", &seconds);
    return seconds;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int result = (int)syscall(SYS_clock_gettime, clock, now);
    if (result == 0 && clock == CLOCK_REALTIME) now->tv_sec += shift();
    return result;
}

int gettimeofday(struct timeval *now, void *zone) {
    int result = (int)syscall(SYS_gettimeofday, now, zone);
    if (result == 0) now->tv_sec += shift();
    return result;
}

time_t time(time_t *now) {
    time_t seconds = (time_t)syscall(SYS_time, NULL) + shift();
    if (now) *now = seconds;
    return seconds;
}
