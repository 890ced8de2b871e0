#ifndef DOWNPIPE_CSQLITE_SHIM_H
#define DOWNPIPE_CSQLITE_SHIM_H

// What Swift cannot import from SQLite: its variadic calls.

#include <sqlite3.h>

// Leaves out the counts of allocated memory, for which every allocation takes a lock of the process. It concerns the
// whole process, and fails after the first other call of SQLite.
static inline int downpipe_leave_out_memory_counts(void) { return sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); }

#endif
