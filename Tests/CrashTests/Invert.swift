#if SQLite
  import DownpipeCore
  import DownpipePOSIX

  @testable import DownpipeFiles

  #if canImport(Glibc)
    import Glibc
  #elseif canImport(Darwin)
    import Darwin
  #endif

  /// A step that inverts every byte with the tested file system. A file that did not pass it, or passed it twice, is
  /// detected as wrong.
  struct Invert: PostProcessor {
    let system: FileSystem

    func process(_ input: File, in context: ProcessingContext) async throws -> File {
      guard let path = input.path, let workspace = context.workspace else {
        throw DownloadError(.processing, "there is no file")
      }
      let output = workspace + "/inverted"
      do {
        try write(path, to: output, context.durability)
        try OpenFolder(workspace, system: system).flush(context.durability)
      } catch let error as SystemError {
        throw error.downloadError("invert", path)
      }
      return File(path: output, name: input.name)
    }

    private func write(_ input: String, to output: String, _ durability: Durability) throws {
      let from = try system.open(Entry(input), O_RDONLY)
      defer { try? system.close(from) }
      let to = try system.open(Entry(output), O_WRONLY | O_CREAT | O_TRUNC)
      do {
        var block = [UInt8](repeating: 0, count: 128 << 10)
        var offset: Int64 = 0
        while true {
          let count = try block.withUnsafeMutableBytes { try system.read(from, into: $0, at: offset) }
          block.withUnsafeMutableBytes { bytes in
            // By words, since the tests run without optimisation.
            let words = bytes.bindMemory(to: UInt64.self)
            for index in words.indices { words[index] = ~words[index] }
          }
          try block.withUnsafeBytes { try system.write(to, UnsafeRawBufferPointer(rebasing: $0[..<count]), at: offset) }
          offset += Int64(count)
          if count < block.count { break }
        }
        if durability == .power { try system.flush(to) }
      } catch {
        try? system.close(to)
        throw error
      }
      try system.close(to)
    }
  }
#endif
