import Downpipe
import DownpipeTesting
import Foundation

/// What the tool has to do in a round of the kill test.
struct KillTestScenario: Sendable {
  enum Kind: String, Sendable, CaseIterable {
    case largeFile = "one large file"
    case severalFiles = "several files at once"
    case steps = "gunzip and move"
    case checksum = "a checksum, gunzip and move"
    case faults = "a server with faults"
    case segments = "several connections to a file"
    case everyStep = "checksums, dates, archives, folders and a program"
  }

  let files: [KillTestFile]
  /// The file to which the program of `--on-finish` writes a line for each of its runs.
  var log: String?
  /// Small files that steps fetch, by path.
  var companions: [String: [UInt8]] = [:]
  /// The options of the command, without URLs and folders.
  let options: [String]
  /// Whether finished files are moved into another folder.
  let moves: Bool

  /// Creates the files.
  ///
  /// - Parameter folder: where the programs that pack files may write.
  init(_ kind: Kind, in folder: String, using generator: inout SeededGenerator) async throws {
    func bytes(_ size: Int) -> [UInt8] { DownloadFixtures.pattern(size: size, seed: generator.next()) }
    func file(
      _ name: String, _ size: Int, bytesPerSecond: Int = 2_560 << 10, connections: Int = 1,
      _ manner: KillTestFile.Manner = .good
    ) -> KillTestFile {
      KillTestFile(
        path: "/\(name)", bytes: bytes(size), bytesPerSecond: bytesPerSecond, connections: connections, manner: manner,
        finalName: name)
    }
    func packed(_ name: String, _ size: Int) async throws -> KillTestFile {
      let text = Self.text(size, using: &generator)
      return KillTestFile(
        path: "/\(name).gz", bytes: try await Self.gzip(text, in: folder), finalName: name, finalBytes: text)
    }

    switch kind {
    case .largeFile:
      // Longer than two checkpoints, so that a restart is noticed.
      files = [file("large", (10 << 20) + 4_321)]
      options = []
      moves = false
    case .severalFiles:
      let sizes = [0, 1, 999, 65_536, 131_072, 262_143, 262_144, 262_145, 300_000, 500_000, 1 << 20, 6 << 20]
      // The large files first: the small ones start and end meanwhile.
      files = sizes.reversed().enumerated().map { index, size in file("file-\(index).bin", size) }
      options = ["-j", "4"]
      moves = false
    case .steps:
      var files = [try await packed("large.txt", 6 << 20), file("plain.bin", 700_000)]
      for index in 0..<8 { files.append(try await packed("small-\(index).txt", 20_000 << index / 2)) }
      self.files = files
      options = ["-j", "3", "--gunzip"]
      moves = true
    case .checksum:
      let file = try await packed("checked.txt", 8 << 20)
      files = [file]
      options = ["--gunzip", "--checksum", "sha256=\(try await Self.digest(file.bytes, in: folder))"]
      moves = true
    case .everyStep:
      var sums = ""
      var files: [KillTestFile] = []
      // Unpacked while it arrives, and small enough to be read by the steps.
      for (name, sizes) in [("large", [4 << 20, 0, 3 << 20, 12_345]), ("small", [1, 70_000])] {
        let tree = Dictionary(
          uniqueKeysWithValues: sizes.enumerated().map { index, size in
            ("part-\(index)/file \(index)", Self.text(size, using: &generator))
          })
        let archive = try await Self.archive(tree, in: folder)
        sums += "\(try await Self.digest(archive, in: folder))  \(name).tar.gz\n"
        var file = KillTestFile(path: "/\(name).tar.gz", bytes: archive, finalName: name)
        file.finalTree = tree
        files.append(file)
      }
      self.files = files
      companions = ["/SHA256SUMS": Array(sums.utf8)]
      options = [
        "-j", "2", "--checksum-file", "SHA256SUMS", "--extract", "--name", "{name}", "--on-finish", "/bin/sh",
        "--on-finish-arg=-c", "--on-finish-arg", "test -d \"$0\" && echo \"$0\" >> '\(folder)/finished'",
        "--on-finish-arg", "{}",
      ]
      log = folder + "/finished"
      moves = true
    case .segments:
      files = [
        file("segments.bin", 40 << 20, bytesPerSecond: 1 << 20, connections: 8),
        file("cut-segments.bin", 10 << 20, bytesPerSecond: 1 << 20, connections: 8, .cut),
      ]
      options = ["-j", "2", "-s", "8", "--retry", "20"]
      moves = false
    case .faults:
      files = [
        file("cut.bin", 3 << 20, .cut), file("unavailable.bin", 1_500_000, .unavailable),
        file("without-ranges.bin", 2 << 20, .withoutRanges), file("weak-tag.bin", 2 << 20, .weakTag),
        file("without-tag.bin", 2 << 20, .withoutTag), file("slow.bin", 400_000, bytesPerSecond: 200_000),
      ]
      options = ["-j", "6", "--retry", "20"]
      moves = false
    }
  }

  /// How long a run that fetches these files takes at least.
  static func duration(of left: [(file: KillTestFile, bytes: Int64)]) -> Duration {
    left.map { .seconds(1) * (Double($0.bytes) / Double($0.file.bytesPerSecond * $0.file.connections)) }.max() ?? .zero
  }

  // MARK: -

  /// Hexadecimal digits, which pack to about half their size; no two blocks are the same.
  private static func text(_ size: Int, using generator: inout SeededGenerator) -> [UInt8] {
    let digits = Array("0123456789abcdef".utf8)
    // As long as the window of deflate, so that no block is found again in the one before.
    let block = DownloadFixtures.pattern(size: 32_768, seed: generator.next()).map { digits[Int($0 & 15)] }
    var text: [UInt8] = []
    text.reserveCapacity(size + block.count)
    var number = 0
    while text.count < size {
      text += Array("block \(number)\n".utf8)
      text += block
      number += 1
    }
    return Array(text.prefix(size))
  }

  private static func gzip(_ bytes: [UInt8], in folder: String) async throws -> [UInt8] {
    let plain = folder + "/to-pack"
    try Data(bytes).write(to: URL(filePath: plain))
    _ = try await Command("gzip", ["-1", "-f", "-n", plain]).run()
    defer { try? FileManager.default.removeItem(atPath: plain + ".gz") }
    return [UInt8](try Data(contentsOf: URL(filePath: plain + ".gz")))
  }

  /// Packs files into a compressed tar.
  private static func archive(_ tree: [String: [UInt8]], in folder: String) async throws -> [UInt8] {
    let root = folder + "/to-archive"
    for (path, bytes) in tree {
      let file = URL(filePath: root + "/" + path)
      try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
      try Data(bytes).write(to: file)
    }
    defer { for path in [root, root + ".tar.gz"] { try? FileManager.default.removeItem(atPath: path) } }
    let ending = try await Command("tar", ["--sort=name", "-czf", root + ".tar.gz", "-C", root, "."]).run()
    guard ending.status == 0 else { throw DownloadError(.processing, "tar has failed: \(ending.errors)") }
    return [UInt8](try Data(contentsOf: URL(filePath: root + ".tar.gz")))
  }

  private static func digest(_ bytes: [UInt8], in folder: String) async throws -> String {
    let path = folder + "/to-digest"
    try Data(bytes).write(to: URL(filePath: path))
    defer { try? FileManager.default.removeItem(atPath: path) }
    return String(try await Command("sha256sum", [path]).run().output.prefix(64))
  }
}
