#define _GNU_SOURCE
#include "CFileCalls.h"

#include <stdio.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>

#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
#endif

int downpipe_set_modified(int descriptor, long long seconds, long nanoseconds) {
  struct timespec times[2] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT}, {.tv_sec = seconds, .tv_nsec = nanoseconds}};
  return futimens(descriptor, times);
}

int downpipe_set_attribute(int descriptor, const char *name, const void *value, unsigned long size) {
#ifdef __APPLE__
  return fsetxattr(descriptor, name, value, size, 0, 0);
#else
  return fsetxattr(descriptor, name, value, size, 0);
#endif
}

long downpipe_attribute(int descriptor, const char *name, void *value, unsigned long capacity) {
#ifdef __APPLE__
  return fgetxattr(descriptor, name, value, capacity, 0, 0);
#else
  return fgetxattr(descriptor, name, value, capacity);
#endif
}

int downpipe_rename_to_free_name(int old_folder, const char *old_name, int folder, const char *name) {
#ifdef __APPLE__
  return renameatx_np(old_folder, old_name, folder, name, RENAME_EXCL);
#else
  // Not every C library has a function for it; 1 is RENAME_NOREPLACE.
  return (int)syscall(SYS_renameat2, old_folder, old_name, folder, name, 1);
#endif
}
