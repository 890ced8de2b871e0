import Downpipe
import Foundation

// A pipeline's steps are the same for all its downloads. These two look at the request first, so that one
// pipeline treats each file as the command that asked for it wanted.

#if Zlib
  /// Unpacks a file whose request asks for it, when it is a gzip file by its name or by its first bytes.
  struct GunzipWhereAsked: PostProcessor {
    private let gunzip = Gunzip()
    private let scope: PathScope

    /// - Parameter scope: where the file may be: after an interruption its path comes out of the ledger.
    init(scope: PathScope = .everywhere) { self.scope = scope }

    var name: String { gunzip.name }
    var summary: String { "where asked" }

    func isNeeded(in context: ProcessingContext) -> Bool { RequestWishes(context.request).unpacks }

    func process(_ file: File, in context: ProcessingContext) async throws -> File {
      try scope.check(file.artifact)
      guard RequestWishes(context.request).unpacks, isGzip(file) else { return file }
      return try await gunzip.process(file, in: context)
    }

    private func isGzip(_ file: File) -> Bool {
      let name = file.name.lowercased()
      // What is called so and is none is an error, which the step reports.
      if [".gz", ".tgz", ".svgz"].contains(where: name.hasSuffix) { return true }
      guard let path = file.path, let handle = FileHandle(forReadingAtPath: path) else { return false }
      defer { try? handle.close() }
      // RFC 1952 §2.3.1
      return (try? handle.read(upToCount: 2)) == Data([0x1F, 0x8B])
    }
  }
#endif

/// Moves a file whose request names a folder.
struct MoveWhereAsked: UniversalPostProcessor {
  /// What happens when a name is taken.
  var onConflict = ConflictPolicy.keepBoth
  /// Where file and folder may be: after an interruption their paths come out of the ledger.
  var scope = PathScope.everywhere

  var name: String { "MoveInto" }
  var summary: String { "where asked" }

  func isNeeded(in context: ProcessingContext) -> Bool { RequestWishes(context.request).folder != nil }

  func process(_ artifact: Artifact, in context: ProcessingContext) async throws -> Artifact {
    guard let folder = RequestWishes(context.request).folder else { return artifact }
    try scope.check(artifact)
    try scope.check(folder: folder)
    return try await MoveInto(folder, onConflict: onConflict).process(artifact, in: context)
  }
}
