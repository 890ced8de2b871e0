import Glibc

// Functions of Glibc that have the name of a type: the qualified name means the type.

/// flock(2).
public func lockFile(_ file: Int32, _ operation: Int32) -> Int32 { flock(file, operation) }

/// statvfs(3).
public func status(ofFileSystem path: UnsafePointer<CChar>, _ result: UnsafeMutablePointer<statvfs>) -> Int32 {
  statvfs(path, result)
}

/// sigaction(2) without a new action.
public func action(of signal: Int32, _ result: UnsafeMutablePointer<sigaction>) -> Int32 {
  sigaction(signal, nil, result)
}

/// getrlimit(2) for descriptors.
public func limitOfDescriptors(_ result: UnsafeMutablePointer<rlimit>) -> Int32 {
  getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), result)
}
