#ifndef C_FAULTY_VFS_H
#define C_FAULTY_VFS_H

#include <stdint.h>

// A layer above SQLite's own file system that asks before each call on the files of databases that are watched.
// Once it is installed it is the default of the process; the files of other databases pass through it untouched.

/// The calls that are asked about. Giving back (unlocking, closing) never fails, as it does not for a dying process.
enum faulty_vfs_call {
  faulty_vfs_open,
  faulty_vfs_read,
  faulty_vfs_write,
  faulty_vfs_truncate,
  faulty_vfs_sync,
  faulty_vfs_size,
  faulty_vfs_lock,
  faulty_vfs_delete,
  faulty_vfs_access,
  faulty_vfs_shm_map,
  faulty_vfs_shm_lock,
  /// The index of the write-ahead log is about to be let go of, and may be deleted unless this fails.
  faulty_vfs_shm_delete
};

/// What becomes of a call.
struct faulty_vfs_verdict {
  /// 0: it is made. Otherwise it is not, and fails with this result code of SQLite's.
  int32_t code;
  /// Of a write that fails, how many of its bytes are written all the same.
  int32_t torn_bytes;
};

/// Called before each file call, on the thread of the call; `disk` is the number that the file's prefix is watched for, `size` the
/// bytes to be read or written, the size to truncate to, and otherwise 0.
typedef struct faulty_vfs_verdict (*faulty_vfs_ask)(
    uint64_t disk, enum faulty_vfs_call call, const char *path, int64_t size);

/// Makes the layer the process's default, for databases opened from now on. Only the first call does anything.
/// Returns a result code of SQLite's.
int faulty_vfs_install(faulty_vfs_ask ask);

/// Watches the files whose absolute path begins with `prefix`. False when too many are watched, or it is too long.
_Bool faulty_vfs_watch(const char *prefix, uint64_t disk);

/// Ends that. Files that are still open ask on.
void faulty_vfs_unwatch(uint64_t disk);

#endif
