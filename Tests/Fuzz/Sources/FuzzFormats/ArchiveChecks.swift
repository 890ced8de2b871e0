@testable import DownpipeArchive
import DownpipeCore
import Foundation
import FuzzSupport

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// Unpacks inputs, and checks that nothing outside of the folder is touched and that the limits hold.
struct ArchiveChecks {
  private static let limits = Unarchive.Limits(entries: 50, bytes: 64 << 10, ratio: nil, depth: 8)

  /// What is outside of the workspace, where links and names of entries may lead.
  private let outside: String
  private let workspace: String
  private let folder: String

  init() {
    let parent = FileManager.default.fileExists(atPath: "/dev/shm") ? "/dev/shm" : NSTemporaryDirectory()
    folder = "\(parent)/downpipe-fuzz-\(getpid())"
    outside = "\(folder)/outside"
    workspace = "\(folder)/work"
    do {
      try FileManager.default.createDirectory(atPath: outside, withIntermediateDirectories: true)
      try Data("secret".utf8).write(to: URL(filePath: "\(outside)/file"))
    } catch { fail("\(folder): \(error)") }
  }

  func run(_ bytes: [UInt8]) {
    try? FileManager.default.removeItem(atPath: workspace)
    try? FileManager.default.createDirectory(atPath: workspace, withIntermediateDirectories: true)
    // The first byte chooses the options.
    let flags = bytes.first ?? 0
    let input = Array(bytes.dropFirst())
    let (workspace, limits) = (workspace, Self.limits)
    Waiting.run(within: .seconds(60), "an archive") {
      do {
        let request = try DownloadRequest("https://a.example/a.tar")
        let file = File(Artifact(location: .memory(input), name: "a.tar", size: .known(Int64(input.count))))
        let context = ProcessingContext(request: request, workspace: workspace)
        if flags & 0x80 != 0 {
          _ = try await Decompress(maximumOutput: limits.bytes).process(file, in: context)
        } else {
          _ = try await Unarchive(
            strippingComponents: Int(flags & 3), flattening: flags & 4 != 0, links: flags & 8 != 0 ? .refuse : .inside,
            times: flags & 16 != 0 ? .drop : .keep, modes: flags & 32 != 0 ? .keep : .executable, limits: limits
          ).process(file, in: context)
        }
      } catch let error as DownloadError {
        if error.message.utf8.count > 3000 { fail("a message of \(error.message.utf8.count) bytes") }
      } catch { fail("\(type(of: error)): \(error)") }
    }
    checkOutside()
    checkTree()
  }

  private func checkOutside() {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: folder).sorted()) ?? []
    if names != ["outside", "work"] { fail("beside the workspace there are \(names)") }
    let files = (try? FileManager.default.contentsOfDirectory(atPath: outside)) ?? []
    if files != ["file"] || FileManager.default.contents(atPath: "\(outside)/file") != Data("secret".utf8) {
      fail("outside there is \(files)")
    }
  }

  private func checkTree() {
    var total: Int64 = 0
    var count = 0
    for name in FileManager.default.enumerator(atPath: workspace)?.compactMap({ $0 as? String }) ?? [] {
      var status = stat()
      let path = "\(workspace)/\(name)"
      guard lstat(path, &status) == 0 else { continue }
      count += 1
      switch status.st_mode & S_IFMT {
      case S_IFREG: total += Int64(status.st_size)
      case S_IFDIR: break
      case S_IFLNK:
        guard let target = realpath(path, nil) else { continue }
        defer { free(target) }
        if !String(cString: target).hasPrefix(workspace + "/") { fail("\(name) leads to \(String(cString: target))") }
      default: fail("\(name) has the mode \(String(status.st_mode, radix: 8))")
      }
      if status.st_mode & (S_ISUID | S_ISGID) != 0 { fail("\(name) has the mode \(String(status.st_mode, radix: 8))") }
    }
    if total > 64 << 10 { fail("\(total) bytes on disk") }
    // Folders that no entry names, and those of the step itself.
    if count > 50 * 9 + 4 { fail("\(count) files and folders") }
  }
}
