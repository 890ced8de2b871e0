#ifndef DOWNPIPE_CFILEATTRIBUTES_H
#define DOWNPIPE_CFILEATTRIBUTES_H

// Calls on the attributes of files that Swift's module of the C library lacks, or that differ between the systems.

#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/xattr.h>
#include <time.h>

// Sets the modification time and leaves the access time.
static inline int downpipe_set_modified(int descriptor, time_t seconds, long nanoseconds) {
  struct timespec times[2] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT}, {.tv_sec = seconds, .tv_nsec = nanoseconds}};
  return futimens(descriptor, times);
}

static inline int downpipe_set_attribute(int descriptor, const char *name, const void *value, size_t size) {
#ifdef __APPLE__
  return fsetxattr(descriptor, name, value, size, 0, 0);
#else
  return fsetxattr(descriptor, name, value, size, 0);
#endif
}

// The size of the value; at most `capacity` bytes are stored.
static inline ssize_t downpipe_attribute(int descriptor, const char *name, void *value, size_t capacity) {
#ifdef __APPLE__
  return fgetxattr(descriptor, name, value, capacity, 0, 0);
#else
  return fgetxattr(descriptor, name, value, capacity);
#endif
}

#endif
