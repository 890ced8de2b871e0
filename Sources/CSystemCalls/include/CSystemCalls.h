#ifndef DOWNPIPE_CSYSTEMCALLS_H
#define DOWNPIPE_CSYSTEMCALLS_H

// Calls on files and sockets that Swift's module of the C library lacks, or that differ between the systems. Each returns
// -1 after a failure, and sets errno. No header of the C library is included: its types would be those of this module, too.

// Sets the modification time and leaves the access time.
int downpipe_set_modified(int descriptor, long long seconds, long nanoseconds);

int downpipe_set_attribute(int descriptor, const char *name, const void *value, unsigned long size);

// Returns the size of the value; at most `capacity` bytes are stored.
long downpipe_attribute(int descriptor, const char *name, void *value, unsigned long capacity);

// Renames an entry unless the new name exists (EEXIST).
int downpipe_rename_to_free_name(int old_folder, const char *old_name, int folder, const char *name);

// Sockets that do not block, that the programs which this process starts do not get, and that raise no SIGPIPE.
int downpipe_socket(int family);
int downpipe_socket_pair(int descriptors[2]);
int downpipe_accept(int listener);
long downpipe_send(int descriptor, const void *bytes, unsigned long size);

#endif
