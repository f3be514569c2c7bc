/* A stand-in for a bad disk and a clock that was set, for bench/chaos.py: loaded before libc (LD_PRELOAD), it looks at
   what the file named by CHAOS_SAYS says. "slow": every write and sync below CHAOS_FOLDER takes 300 ms. "read-only":
   they fail with EROFS. "inodes": no file can be made there. "clock N": the wall clock is N seconds off. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static __thread char said[64];

static const char *says(void) {
    static int (*really)(const char *, int, ...);
    const char *path = getenv("CHAOS_SAYS");
    if (!really) really = dlsym(RTLD_NEXT, "open");
    int saved = errno, file = path ? really(path, O_RDONLY) : -1;
    said[0] = 0;
    if (file >= 0) {
        ssize_t length = read(file, said, sizeof said - 1);
        said[length > 0 ? length : 0] = 0;
        close(file);
    }
    errno = saved;
    return said;
}

static int below(const char *path) {
    const char *folder = getenv("CHAOS_FOLDER");
    return folder && path && !strncmp(path, folder, strlen(folder));
}

static int of_store(int file) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0) return 0;
    path[length] = 0;
    return below(path);
}

/* Whether a write must fail; sleeps where the disk is slow. */
static int refused(int file) {
    if (!of_store(file)) return 0;
    const char *now = says();
    if (!strncmp(now, "slow", 4)) usleep(300000);
    if (strncmp(now, "read-only", 9)) return 0;
    errno = EROFS;
    return 1;
}

#define WRITING(name, kind, given, passed) \
    kind name given { \
        static kind(*really) given; \
        if (!really) really = dlsym(RTLD_NEXT, #name); \
        return refused(file) ? -1 : really passed; \
    }

WRITING(pwrite, ssize_t, (int file, const void *data, size_t size, off_t at), (file, data, size, at))
WRITING(pwrite64, ssize_t, (int file, const void *data, size_t size, off64_t at), (file, data, size, at))
WRITING(write, ssize_t, (int file, const void *data, size_t size), (file, data, size))
WRITING(fsync, int, (int file), (file))
WRITING(fdatasync, int, (int file), (file))
WRITING(ftruncate, int, (int file, off_t size), (file, size))
WRITING(ftruncate64, int, (int file, off64_t size), (file, size))

#define OPENING(name) \
    int name(const char *path, int flags, ...) { \
        static int (*really)(const char *, int, ...); \
        if (!really) really = dlsym(RTLD_NEXT, #name); \
        va_list more; \
        va_start(more, flags); \
        int mode = va_arg(more, int); \
        va_end(more); \
        if ((flags & O_CREAT) && below(path) && access(path, F_OK)) { \
            const char *now = says(); \
            if (!strncmp(now, "inodes", 6)) { errno = ENOSPC; return -1; } \
            if (!strncmp(now, "read-only", 9)) { errno = EROFS; return -1; } \
        } \
        return really(path, flags, mode); \
    }

OPENING(open)
OPENING(open64)

int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*really)(clockid_t, struct timespec *);
    if (!really) really = dlsym(RTLD_NEXT, "clock_gettime");
    int result = really(clock, now);
    if (clock == CLOCK_REALTIME && getenv("CHAOS_SAYS")) {
        const char *words = says();
        if (!strncmp(words, "clock ", 6)) now->tv_sec += atol(words + 6);
    }
    return result;
}
