// The core, and the plug-ins that most downloaders use.
@_exported public import DownpipeChecksum
@_exported public import DownpipeCore
@_exported public import DownpipeFiles
@_exported public import DownpipeGates
@_exported public import DownpipeGzip
@_exported public import DownpipeHTTP
@_exported public import DownpipeLinks
@_exported public import DownpipeMemory
@_exported public import DownpipeScheduling

#if SQLite
  @_exported public import DownpipeSQLite
#endif
