import Foundation

extension Comparison {
  /// Makes the files and lists of a row.
  func prepare(_ row: Row) async throws -> PreparedRow {
    var prepared = PreparedRow(row: row, comparison: self)
    switch row.work {
    case .file(let size), .verified(let size), .segments(_, let size):
      let name = "\(size).bin"
      let digest = try await contents.random(name, size: size)
      prepared.file = name
      prepared.expected = [(name, "\(contents.root)/\(name)")]
      switch row.work {
      case .verified: prepared.kind = .verified(sha256: digest)
      case .segments(let count, _): prepared.kind = .segments(count, size: size)
      default: break
      }
    case .gunzipped(let size):
      let name = "\(size).txt"
      try await contents.compressed(name, size: size, processes: processes)
      prepared.file = name + ".gz"
      prepared.expected = [(name, "\(contents.root)/\(name)")]
      prepared.kind = .gunzipped
    case .unpacked(let size):
      let name = "\(size)-tree"
      let files = try await contents.archived(name, size: size, processes: processes)
      prepared.file = name + ".tar.zst"
      prepared.name = name
      prepared.expected = files.map { ("\(name)/\($0)", "\(contents.root)/\(name)/\($0)") }
      prepared.kind = .unpacked
    case .list(let count, let size, let jobs):
      let folder = "\(count)"
      try await contents.random(folder, count: count, size: size)
      prepared.kind = .list(jobs: jobs)
      prepared.expected = (0..<count).map { ("\($0).bin", "\(contents.root)/\(folder)/\($0).bin") }
      prepared.lists = try lists(row.name, count) {
        "\(folder)/\($0).bin"
      } site: {
        .plain
      }
    case .slow(_, let size):
      let count = slowDownloads(row)
      _ = try await contents.random("trickle.bin", size: size)
      prepared.kind = .slow(count: count)
      prepared.expected = (0..<count).map { ("\($0).bin", "\(contents.root)/trickle.bin") }
      prepared.lists = try lists(row.name, count) {
        "\($0).bin"
      } site: {
        .trickle
      }
    case .firstByte, .queue: break
    }
    return prepared
  }

  /// How many downloads a row has at once: each needs a connection and a file.
  func slowDownloads(_ row: Row) -> Int {
    guard case .slow(let count, _) = row.work else { return 0 }
    return min(
      count, max(1, (DescriptorLimit.raise(to: 2 * count + Self.spareDescriptors) - Self.spareDescriptors) / 2))
  }

  private static let spareDescriptors = 400

  private func lists(
    _ name: String, _ count: Int, _ path: (Int) -> String, site: () -> Site
  ) throws -> [Bool: (urls: String, curl: String)] {
    var lists: [Bool: (urls: String, curl: String)] = [:]
    for isCounted in [false, true] {
      let urls = (0..<count).map { nginx.url(site(), path($0), counted: isCounted) }
      lists[isCounted] = (
        try memory.write(urls.map { $0 + "\n" }.joined(), to: "\(name)-\(isCounted).txt"),
        try memory.write(
          zip(urls, 0...).map { "url = \($0)\noutput = \($1).bin\n" }.joined(), to: "\(name)-\(isCounted).curl")
      )
    }
    return lists
  }
}
