#define _GNU_SOURCE
#include "CSystemCalls.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
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

#ifdef __APPLE__
static int prepared(int descriptor) {
  int on = 1;
  if (descriptor >= 0) {
    fcntl(descriptor, F_SETFD, FD_CLOEXEC);
    fcntl(descriptor, F_SETFL, O_NONBLOCK);
    setsockopt(descriptor, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof on);
  }
  return descriptor;
}

int downpipe_socket(int family) { return prepared(socket(family, SOCK_STREAM, 0)); }

int downpipe_socket_pair(int descriptors[2]) {
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, descriptors) != 0) return -1;
  prepared(descriptors[0]);
  prepared(descriptors[1]);
  return 0;
}

int downpipe_accept(int listener) { return prepared(accept(listener, 0, 0)); }

long downpipe_send(int descriptor, const void *bytes, unsigned long size) { return send(descriptor, bytes, size, 0); }
#else
// Set as the socket is made: a program that another thread starts in between would get it.
static const int prepared = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;

int downpipe_socket(int family) { return socket(family, prepared, 0); }

int downpipe_socket_pair(int descriptors[2]) { return socketpair(AF_UNIX, prepared, 0, descriptors); }

int downpipe_accept(int listener) { return accept4(listener, 0, 0, SOCK_CLOEXEC | SOCK_NONBLOCK); }

long downpipe_send(int descriptor, const void *bytes, unsigned long size) {
  return send(descriptor, bytes, size, MSG_NOSIGNAL);
}
#endif
