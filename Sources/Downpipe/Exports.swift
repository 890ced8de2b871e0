// The core, and the plug-ins that most downloaders use.
@_exported public import DownpipeChecksum
@_exported public import DownpipeCore
@_exported public import DownpipeFiles
@_exported public import DownpipeGates
@_exported public import DownpipeGzip
@_exported public import DownpipeLinks
@_exported public import DownpipeMemory
@_exported public import DownpipeScheduling

#if SQLite
  @_exported public import DownpipeSQLite
#endif

#if LIBCURL
  @_exported public import DownpipeFileTransfer
  @_exported public import DownpipeHTTP
#else
  @_exported public import DownpipeURLSession

  /// The source of `http:` and `https:` URLs where libcurl is absent: the platform is neither Linux nor macOS, or the
  /// package is built without the trait `Curl`.
  ///
  /// It reads as `HTTPSource` of DownpipeHTTP does, and has fewer settings: see `URLSessionSource.Configuration`.
  public typealias HTTPSource = URLSessionSource
#endif
