import DownpipeCore

/// What reading one property list, or decoding one keyed archive, may cost.
///
/// Real resume data has some 100 values, four levels and 10 KiB. Binary lists may share values, so that the values
/// that are made are counted, not those in the file.
struct PropertyListBudget {
  /// The most bytes of a list.
  static let maximumSize = 1 << 20
  /// The most levels of arrays and dictionaries.
  static let maximumDepth = 64
  /// The most bytes of header fields put into a request.
  static let maximumHeaderBytes = 64 << 10

  private var values = 50_000
  private var bytes = 4 << 20

  /// Pays for one value of `count` bytes at a depth.
  mutating func spend(_ count: Int = 0, depth: Int) throws(DownloadError) {
    guard depth <= Self.maximumDepth else {
      throw .resumeData("its values nest deeper than \(Self.maximumDepth) levels, or contain themselves")
    }
    values -= 1
    bytes -= count
    guard values >= 0, bytes >= 0 else { throw .resumeData("it holds more values than resume data ever does") }
  }
}

extension DownloadError {
  /// Something is wrong with resume data; every message begins in the same way.
  static func resumeData(_ what: String) -> DownloadError {
    DownloadError(.resumeData, "the resume data cannot be used: \(what)")
  }
}
