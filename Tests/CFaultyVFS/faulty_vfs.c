#include "CFaultyVFS.h"

#include <pthread.h>
#include <sqlite3.h>
#include <string.h>

#define MAXIMUM_PREFIXES 1024
#define MAXIMUM_LENGTH 1024

static struct {
  uint64_t disk;
  char text[MAXIMUM_LENGTH];
} prefixes[MAXIMUM_PREFIXES];  // free where disk is 0
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

// Written once, before any file is opened through the layer.
static faulty_vfs_ask ask_test;
static sqlite3_vfs *base;

typedef struct {
  sqlite3_file file;  // first: SQLite's view of it
  uint64_t disk;      // 0 when no disk is watched
  const char *path;   // SQLite keeps it until the file is closed
} faulty_file;        // followed by the file of the layer below

static sqlite3_file *below(sqlite3_file *file) { return (sqlite3_file *)((faulty_file *)file + 1); }

static uint64_t disk_of(const char *path) {
  uint64_t disk = 0;
  if (!path) return 0;
  pthread_mutex_lock(&lock);
  for (int i = 0; i < MAXIMUM_PREFIXES && !disk; i++)
    if (prefixes[i].disk && !strncmp(path, prefixes[i].text, strlen(prefixes[i].text))) disk = prefixes[i].disk;
  pthread_mutex_unlock(&lock);
  return disk;
}

static struct faulty_vfs_verdict ask(uint64_t disk, enum faulty_vfs_call call, const char *path, int64_t size) {
  if (!disk) return (struct faulty_vfs_verdict){0, 0};
  return ask_test(disk, call, path, size);
}

static int ask_file(sqlite3_file *file, enum faulty_vfs_call call, int64_t size) {
  faulty_file *own = (faulty_file *)file;
  return ask(own->disk, call, own->path, size).code;
}

// MARK: Files

static int file_close(sqlite3_file *file) { return below(file)->pMethods->xClose(below(file)); }

static int file_read(sqlite3_file *file, void *bytes, int count, sqlite3_int64 offset) {
  int code = ask_file(file, faulty_vfs_read, count);
  return code ? code : below(file)->pMethods->xRead(below(file), bytes, count, offset);
}

static int file_write(sqlite3_file *file, const void *bytes, int count, sqlite3_int64 offset) {
  faulty_file *own = (faulty_file *)file;
  struct faulty_vfs_verdict verdict = ask(own->disk, faulty_vfs_write, own->path, count);
  if (!verdict.code) return below(file)->pMethods->xWrite(below(file), bytes, count, offset);
  int torn = verdict.torn_bytes < count ? verdict.torn_bytes : count;
  if (torn > 0) below(file)->pMethods->xWrite(below(file), bytes, torn, offset);
  return verdict.code;
}

static int file_truncate(sqlite3_file *file, sqlite3_int64 size) {
  int code = ask_file(file, faulty_vfs_truncate, size);
  return code ? code : below(file)->pMethods->xTruncate(below(file), size);
}

static int file_sync(sqlite3_file *file, int flags) {
  int code = ask_file(file, faulty_vfs_sync, 0);
  return code ? code : below(file)->pMethods->xSync(below(file), flags);
}

static int file_size(sqlite3_file *file, sqlite3_int64 *size) {
  int code = ask_file(file, faulty_vfs_size, 0);
  return code ? code : below(file)->pMethods->xFileSize(below(file), size);
}

static int file_lock(sqlite3_file *file, int level) {
  int code = ask_file(file, faulty_vfs_lock, 0);
  return code ? code : below(file)->pMethods->xLock(below(file), level);
}

static int file_unlock(sqlite3_file *file, int level) { return below(file)->pMethods->xUnlock(below(file), level); }

static int file_check_reserved(sqlite3_file *file, int *result) {
  return below(file)->pMethods->xCheckReservedLock(below(file), result);
}

static int file_control(sqlite3_file *file, int operation, void *argument) {
  return below(file)->pMethods->xFileControl(below(file), operation, argument);
}

static int file_sector_size(sqlite3_file *file) { return below(file)->pMethods->xSectorSize(below(file)); }

static int file_characteristics(sqlite3_file *file) {
  return below(file)->pMethods->xDeviceCharacteristics(below(file));
}

static int file_shm_map(sqlite3_file *file, int page, int size, int extend, void volatile **memory) {
  int code = ask_file(file, faulty_vfs_shm_map, 0);
  return code ? code : below(file)->pMethods->xShmMap(below(file), page, size, extend, memory);
}

static int file_shm_lock(sqlite3_file *file, int offset, int count, int flags) {
  int code = flags & SQLITE_SHM_LOCK ? ask_file(file, faulty_vfs_shm_lock, 0) : 0;
  return code ? code : below(file)->pMethods->xShmLock(below(file), offset, count, flags);
}

static void file_shm_barrier(sqlite3_file *file) { below(file)->pMethods->xShmBarrier(below(file)); }

static int file_shm_unmap(sqlite3_file *file, int deletes) {
  if (deletes && ask_file(file, faulty_vfs_shm_delete, 0)) deletes = 0;
  return below(file)->pMethods->xShmUnmap(below(file), deletes);
}

// Version 2: without memory-mapped files, whose changes no call would show.
static const sqlite3_io_methods methods = {
    2,
    file_close,
    file_read,
    file_write,
    file_truncate,
    file_sync,
    file_size,
    file_lock,
    file_unlock,
    file_check_reserved,
    file_control,
    file_sector_size,
    file_characteristics,
    file_shm_map,
    file_shm_lock,
    file_shm_barrier,
    file_shm_unmap,
    0,
    0,
};

// MARK: The file system

static int vfs_open(sqlite3_vfs *vfs, const char *path, sqlite3_file *file, int flags, int *out_flags) {
  faulty_file *own = (faulty_file *)file;
  memset(own, 0, sizeof *own);
  own->path = path;
  own->disk = disk_of(path);
  int code = ask_file(file, faulty_vfs_open, 0);
  if (code) return code;
  code = base->xOpen(base, path, below(file), flags, out_flags);
  // Where SQLite is to close a file that could not be opened, the layer below says so.
  if (below(file)->pMethods) own->file.pMethods = &methods;
  return code;
}

static int vfs_delete(sqlite3_vfs *vfs, const char *path, int flushes_folder) {
  int code = ask(disk_of(path), faulty_vfs_delete, path, 0).code;
  return code ? code : base->xDelete(base, path, flushes_folder);
}

static int vfs_access(sqlite3_vfs *vfs, const char *path, int flags, int *result) {
  int code = ask(disk_of(path), faulty_vfs_access, path, 0).code;
  return code ? code : base->xAccess(base, path, flags, result);
}

static int vfs_full_path(sqlite3_vfs *vfs, const char *path, int count, char *result) {
  return base->xFullPathname(base, path, count, result);
}

static void *vfs_dl_open(sqlite3_vfs *vfs, const char *path) { return base->xDlOpen(base, path); }
static void vfs_dl_error(sqlite3_vfs *vfs, int count, char *message) { base->xDlError(base, count, message); }
static void (*vfs_dl_symbol(sqlite3_vfs *vfs, void *library, const char *symbol))(void) {
  return base->xDlSym(base, library, symbol);
}
static void vfs_dl_close(sqlite3_vfs *vfs, void *library) { base->xDlClose(base, library); }
static int vfs_random(sqlite3_vfs *vfs, int count, char *bytes) { return base->xRandomness(base, count, bytes); }
static int vfs_sleep(sqlite3_vfs *vfs, int microseconds) { return base->xSleep(base, microseconds); }
static int vfs_time(sqlite3_vfs *vfs, double *time) { return base->xCurrentTime(base, time); }
static int vfs_last_error(sqlite3_vfs *vfs, int count, char *message) {
  return base->xGetLastError(base, count, message);
}
static int vfs_time_int64(sqlite3_vfs *vfs, sqlite3_int64 *time) { return base->xCurrentTimeInt64(base, time); }

static sqlite3_vfs layer = {
    .iVersion = 2,
    .zName = "faulty",
    .xOpen = vfs_open,
    .xDelete = vfs_delete,
    .xAccess = vfs_access,
    .xFullPathname = vfs_full_path,
    .xDlOpen = vfs_dl_open,
    .xDlError = vfs_dl_error,
    .xDlSym = vfs_dl_symbol,
    .xDlClose = vfs_dl_close,
    .xRandomness = vfs_random,
    .xSleep = vfs_sleep,
    .xCurrentTime = vfs_time,
    .xGetLastError = vfs_last_error,
    .xCurrentTimeInt64 = vfs_time_int64,
};

int faulty_vfs_install(faulty_vfs_ask ask) {
  int code = SQLITE_OK;
  pthread_mutex_lock(&lock);
  if (!base) {
    code = sqlite3_initialize();
    sqlite3_vfs *found = code ? 0 : sqlite3_vfs_find(0);
    if (!code && (!found || found->iVersion < 2)) code = SQLITE_NOTFOUND;
    if (!code) {
      ask_test = ask;
      base = found;
      layer.szOsFile = (int)sizeof(faulty_file) + found->szOsFile;
      layer.mxPathname = found->mxPathname;
      code = sqlite3_vfs_register(&layer, 1);
      if (code) base = 0;
    }
  }
  pthread_mutex_unlock(&lock);
  return code;
}

_Bool faulty_vfs_watch(const char *prefix, uint64_t disk) {
  _Bool done = 0;
  if (!disk || strlen(prefix) >= MAXIMUM_LENGTH) return 0;
  pthread_mutex_lock(&lock);
  for (int i = 0; i < MAXIMUM_PREFIXES && !done; i++) {
    if (prefixes[i].disk) continue;
    strcpy(prefixes[i].text, prefix);
    prefixes[i].disk = disk;
    done = 1;
  }
  pthread_mutex_unlock(&lock);
  return done;
}

void faulty_vfs_unwatch(uint64_t disk) {
  pthread_mutex_lock(&lock);
  for (int i = 0; i < MAXIMUM_PREFIXES; i++)
    if (prefixes[i].disk == disk) prefixes[i].disk = 0;
  pthread_mutex_unlock(&lock);
}
