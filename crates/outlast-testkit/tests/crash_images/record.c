/*
 * A recorder for LD_PRELOAD: appends to a file every change and every sync that this process makes
 * in one folder, in the order in which they happened.
 *
 * OUTLAST_RECORD_FOLDER  the folder; its files are recorded, apart from `*-shm`, which is shared
 *                        memory and never needs to survive
 * OUTLAST_RECORD_LOG     where the record goes, outside of the folder
 * OUTLAST_RECORD_NOTES   a file outside of the folder; each write to it becomes a note in the record,
 *                        and the note `die` kills the process between two operations
 *
 * An entry is: kind (1 byte), two numbers (8 bytes each), the length of the data (4 bytes), the data;
 * numbers in the order of the machine. `recording.rs` reads it.
 *
 * A change and its entry are made under one lock, so the record and the folder agree at any moment.
 * A sync has two entries, because other threads go on while it runs. What the recorder cannot describe
 * becomes an entry of the kind UNKNOWN, at which the test stops.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { CREATED = 1, OPENED, WRITTEN, TRUNCATED, SYNC_BEGUN, SYNC_DONE, UNLINKED, RENAMED, NOTE, UNKNOWN };
enum { NOT_OURS = 0, OUR_FILE, OUR_FOLDER, OUR_NOTES };

/* A sync takes at least so long, as on a disk: other threads get something done meanwhile. */
#define SYNC_MICROSECONDS 300
#define MAX_DESCRIPTORS 65536

static struct {
    unsigned char what;
    uint64_t inode;
} descriptors[MAX_DESCRIPTORS];

static const char *folder, *notes;
static size_t folder_length;
static int record = -1;
static uint64_t syncs;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

#define REAL(name) ((__typeof__(&name))real(#name))

static void *real(const char *name) {
    void *found = dlsym(RTLD_NEXT, name);
    if (!found) abort();
    return found;
}

__attribute__((constructor)) static void start(void) {
    const char *path = getenv("OUTLAST_RECORD_LOG");
    folder = getenv("OUTLAST_RECORD_FOLDER");
    notes = getenv("OUTLAST_RECORD_NOTES");
    if (!path || !folder || !notes) return;
    folder_length = strlen(folder);
    record = REAL(open)(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (record < 0) abort();
}

static void entry(unsigned char kind, uint64_t one, uint64_t other, const void *data, uint32_t length) {
    unsigned char head[21];
    head[0] = kind;
    memcpy(head + 1, &one, 8);
    memcpy(head + 9, &other, 8);
    memcpy(head + 17, &length, 4);
    struct iovec parts[2] = {{head, sizeof head}, {(void *)data, length}};
    if (REAL(writev)(record, parts, 2) != (ssize_t)(sizeof head + length)) abort();
}

static void unknown(const char *what) { entry(UNKNOWN, 0, 0, what, strlen(what)); }

/* The name of a file of ours within the folder, or NULL. */
static const char *name_of(const char *path) {
    if (record < 0 || !path) return NULL;
    if (strncmp(path, folder, folder_length) || path[folder_length] != '/') return NULL;
    const char *name = path + folder_length + 1;
    size_t length = strlen(name);
    if (length == 0 || (length >= 4 && !strcmp(name + length - 4, "-shm"))) return NULL;
    if (strchr(name, '/')) unknown("a folder within the folder");
    return name;
}

static unsigned char what_is(int descriptor) {
    if (record < 0 || descriptor < 0 || descriptor >= MAX_DESCRIPTORS) return NOT_OURS;
    return descriptors[descriptor].what;
}

static int opened(int (*open_it)(const char *, int, ...), const char *path, int flags, mode_t mode) {
    const char *name = name_of(path);
    int is_folder = record >= 0 && !strcmp(path, folder);
    int is_notes = record >= 0 && !strcmp(path, notes);
    if (!name && !is_folder && !is_notes) return open_it(path, flags, mode);
    pthread_mutex_lock(&lock);
    int existed = !access(path, F_OK);
    int descriptor = open_it(path, flags, mode);
    int error = errno;
    struct stat about;
    if (descriptor >= 0) {
        if (descriptor >= MAX_DESCRIPTORS || fstat(descriptor, &about)) abort();
        descriptors[descriptor].what = name ? OUR_FILE : is_folder ? OUR_FOLDER : OUR_NOTES;
        descriptors[descriptor].inode = about.st_ino;
        if (name) {
            entry(existed ? OPENED : CREATED, about.st_ino, 0, name, strlen(name));
            if (existed && (flags & O_TRUNC)) entry(TRUNCATED, about.st_ino, 0, NULL, 0);
        }
    }
    pthread_mutex_unlock(&lock);
    errno = error;
    return descriptor;
}

#define MODE(flags)                                   \
    mode_t mode = 0;                                  \
    if ((flags) & (O_CREAT | __O_TMPFILE)) {          \
        va_list list;                                 \
        va_start(list, flags);                        \
        mode = va_arg(list, mode_t);                  \
        va_end(list);                                 \
    }

int open(const char *path, int flags, ...) {
    MODE(flags)
    return opened(REAL(open), path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    MODE(flags)
    return opened(REAL(open64), path, flags, mode);
}

int openat(int at, const char *path, int flags, ...) {
    MODE(flags)
    if (path[0] == '/' || at == AT_FDCWD) return opened(REAL(open), path, flags, mode);
    return REAL(openat)(at, path, flags, mode);
}

int openat64(int at, const char *path, int flags, ...) {
    MODE(flags)
    if (path[0] == '/' || at == AT_FDCWD) return opened(REAL(open64), path, flags, mode);
    return REAL(openat64)(at, path, flags, mode);
}

int close(int descriptor) {
    if (what_is(descriptor)) {
        pthread_mutex_lock(&lock);
        descriptors[descriptor].what = NOT_OURS;
        pthread_mutex_unlock(&lock);
    }
    return REAL(close)(descriptor);
}

/* Enters what was written at `offset`, or before the place of the descriptor if that is negative. */
static void written(int descriptor, off64_t offset, const void *data, ssize_t length) {
    if (length <= 0) return;
    if (offset < 0) offset = lseek64(descriptor, 0, SEEK_CUR) - length;
    entry(WRITTEN, descriptors[descriptor].inode, offset, data, length);
}

static ssize_t noted(const void *data, size_t length) {
    pthread_mutex_lock(&lock);
    if (length == 3 && !memcmp(data, "die", 3)) {
        /* Under the lock: nothing is in the folder that is not in the record. */
        kill(getpid(), SIGKILL);
        for (;;) pause();
    }
    entry(NOTE, 0, 0, data, length);
    pthread_mutex_unlock(&lock);
    return length;
}

#define RECORDED_WRITE(call, offset, data)                        \
    pthread_mutex_lock(&lock);                                    \
    ssize_t length = call;                                        \
    int error = errno;                                            \
    written(descriptor, offset, data, length);                    \
    pthread_mutex_unlock(&lock);                                  \
    errno = error;                                                \
    return length;

ssize_t write(int descriptor, const void *data, size_t size) {
    unsigned char what = what_is(descriptor);
    if (what == OUR_NOTES) return noted(data, size);
    if (what != OUR_FILE) return REAL(write)(descriptor, data, size);
    RECORDED_WRITE(REAL(write)(descriptor, data, size), -1, data)
}

ssize_t pwrite(int descriptor, const void *data, size_t size, off_t offset) {
    if (what_is(descriptor) != OUR_FILE) return REAL(pwrite)(descriptor, data, size, offset);
    RECORDED_WRITE(REAL(pwrite)(descriptor, data, size, offset), offset, data)
}

ssize_t pwrite64(int descriptor, const void *data, size_t size, off64_t offset) {
    if (what_is(descriptor) != OUR_FILE) return REAL(pwrite64)(descriptor, data, size, offset);
    RECORDED_WRITE(REAL(pwrite64)(descriptor, data, size, offset), offset, data)
}

/* Parts are written one by one, as the kernel may do with them anyway. */
ssize_t writev(int descriptor, const struct iovec *parts, int count) {
    if (!what_is(descriptor)) return REAL(writev)(descriptor, parts, count);
    ssize_t all = 0;
    for (int part = 0; part < count; part++) {
        if (!parts[part].iov_len) continue;
        ssize_t length = write(descriptor, parts[part].iov_base, parts[part].iov_len);
        if (length < 0) return all ? all : length;
        all += length;
        if ((size_t)length < parts[part].iov_len) break;
    }
    return all;
}

#define RECORDED_TRUNCATION(call)                                                     \
    pthread_mutex_lock(&lock);                                                        \
    int done = call;                                                                  \
    int error = errno;                                                                \
    if (!done) entry(TRUNCATED, descriptors[descriptor].inode, length, NULL, 0);      \
    pthread_mutex_unlock(&lock);                                                      \
    errno = error;                                                                    \
    return done;

int ftruncate(int descriptor, off_t length) {
    if (what_is(descriptor) != OUR_FILE) return REAL(ftruncate)(descriptor, length);
    RECORDED_TRUNCATION(REAL(ftruncate)(descriptor, length))
}

int ftruncate64(int descriptor, off64_t length) {
    if (what_is(descriptor) != OUR_FILE) return REAL(ftruncate64)(descriptor, length);
    RECORDED_TRUNCATION(REAL(ftruncate64)(descriptor, length))
}

static int synced(int (*sync_it)(int), int descriptor) {
    unsigned char what = what_is(descriptor);
    if (what != OUR_FILE && what != OUR_FOLDER) return sync_it(descriptor);
    /* Inode 0 stands for the folder. */
    uint64_t inode = what == OUR_FOLDER ? 0 : descriptors[descriptor].inode;
    pthread_mutex_lock(&lock);
    uint64_t number = ++syncs;
    entry(SYNC_BEGUN, inode, number, NULL, 0);
    pthread_mutex_unlock(&lock);
    int done = sync_it(descriptor);
    int error = errno;
    usleep(SYNC_MICROSECONDS);
    pthread_mutex_lock(&lock);
    if (!done) entry(SYNC_DONE, inode, number, NULL, 0);
    pthread_mutex_unlock(&lock);
    errno = error;
    return done;
}

int fsync(int descriptor) { return synced(REAL(fsync), descriptor); }

int fdatasync(int descriptor) { return synced(REAL(fdatasync), descriptor); }

int unlink(const char *path) {
    const char *name = name_of(path);
    if (!name) return REAL(unlink)(path);
    pthread_mutex_lock(&lock);
    int done = REAL(unlink)(path);
    int error = errno;
    if (!done) entry(UNLINKED, 0, 0, name, strlen(name));
    pthread_mutex_unlock(&lock);
    errno = error;
    return done;
}

int rename(const char *from, const char *to) {
    const char *old = name_of(from), *new = name_of(to);
    if (!old && !new) return REAL(rename)(from, to);
    pthread_mutex_lock(&lock);
    int done = REAL(rename)(from, to);
    int error = errno;
    if (!done && old && new) {
        char both[8192];
        size_t length = strlen(old);
        if (length + strlen(new) >= sizeof both) abort();
        memcpy(both, old, length);
        memcpy(both + length, new, strlen(new));
        entry(RENAMED, length, 0, both, length + strlen(new));
    } else if (!done) {
        unknown("a rename across the border of the folder");
    }
    pthread_mutex_unlock(&lock);
    errno = error;
    return done;
}

/* What follows is not used today. It is not described, so it must not go unnoticed. */

#define REFUSED_ON_DESCRIPTOR(name, declared, passed)              \
    int name declared {                                            \
        if (what_is(descriptor) == OUR_FILE) {                     \
            pthread_mutex_lock(&lock);                             \
            unknown(#name);                                        \
            pthread_mutex_unlock(&lock);                           \
        }                                                          \
        return REAL(name) passed;                                  \
    }

REFUSED_ON_DESCRIPTOR(fallocate, (int descriptor, int mode, off_t at, off_t length), (descriptor, mode, at, length))
REFUSED_ON_DESCRIPTOR(fallocate64, (int descriptor, int mode, off64_t at, off64_t length), (descriptor, mode, at, length))
REFUSED_ON_DESCRIPTOR(posix_fallocate, (int descriptor, off_t at, off_t length), (descriptor, at, length))
REFUSED_ON_DESCRIPTOR(posix_fallocate64, (int descriptor, off64_t at, off64_t length), (descriptor, at, length))

#define REFUSED_ON_PATH(name, declared, passed)                    \
    int name declared {                                            \
        if (name_of(path)) {                                       \
            pthread_mutex_lock(&lock);                             \
            unknown(#name);                                        \
            pthread_mutex_unlock(&lock);                           \
        }                                                          \
        return REAL(name) passed;                                  \
    }

REFUSED_ON_PATH(truncate, (const char *path, off_t length), (path, length))
REFUSED_ON_PATH(truncate64, (const char *path, off64_t length), (path, length))
REFUSED_ON_PATH(link, (const char *from, const char *path), (from, path))
REFUSED_ON_PATH(symlink, (const char *from, const char *path), (from, path))
