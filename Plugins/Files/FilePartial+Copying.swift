import DownpipeCore

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

extension FilePartial {
  func mark(endingAt offset: Int64) throws -> BlockMark? {
    try BlockDigest.mark(endingAt: offset, of: path) { try read(at: $0, count: $1) }
  }

  func matches(_ mark: BlockMark) throws -> Bool {
    try BlockDigest.matches(mark) { try read(at: $0, count: $1) }
  }

  func adopt(_ path: String) throws -> Bool { try replaceFile(by: path) }

  func copy(_ path: String, count: Int64) async throws -> Int64? {
    try await Blocking.run { [self] cancellation in
      let source = try reporting("open", path) { () throws(SystemError) in
        // A pipe without a writer would hold us here for ever.
        try system.open(Entry(path), O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
      }
      defer { try? system.close(source) }
      let status = try reporting("look at", path) { () throws(SystemError) in try system.status(source) }
      guard status.kind == .file else {
        throw DownloadError(.storage, "\(path) is no file: its bytes cannot be taken over")
      }
      let count = max(0, count)
      let isItself = try withFile("look at") { file in
        guard let file else { return false }
        return try system.status(file).isSame(as: status)
      }
      if isItself {
        let size = min(count, status.size)
        try truncate(to: size)
        return size
      }
      try truncate(to: 0)
      return try copy(source, path, count: count, cancellation)
    }
  }

  func export(to path: String, count: Int64) async throws {
    let file = ExportedFile(path, count: count, durability: folders.durability, system: system)
    try await Blocking.run { [self] cancellation in
      // A duplicate, so that nothing waits for the lock as long as the copy takes.
      let source = try withFile("export") { file in try file.map { try system.duplicate($0) } }
      defer { if let source { try? system.close(source) } }
      try file.make { target in
        guard let source else { return 0 }
        return try system.copyBytes(of: source, into: target, count: count, cancellation)
      }
    }
  }

  private static let bufferSize = 1 << 20

  private func copy(
    _ source: CInt, _ path: String, count: Int64, _ cancellation: Blocking.Cancellation
  ) throws -> Int64 {
    try withUnsafeTemporaryAllocation(byteCount: Self.bufferSize, alignment: 16) { buffer in
      var done: Int64 = 0
      while done < count {
        try cancellation.check()
        let chunk = UnsafeMutableRawBufferPointer(rebasing: buffer[..<Int(min(Int64(buffer.count), count - done))])
        let got = try reporting("read", path) { () throws(SystemError) in
          try system.read(source, into: chunk, at: done)
        }
        try write(UnsafeRawBufferPointer(rebasing: chunk[..<got]).bytes, at: done)
        done += Int64(got)
        // It may have been cut meanwhile.
        if got < chunk.count { break }
      }
      return done
    }
  }
}
