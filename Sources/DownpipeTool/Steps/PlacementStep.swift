import Downpipe
import Foundation

/// Moves a file into its folder, under the name that its request says.
struct PlacementStep: UniversalPostProcessor {
  var name: String { RequestSteps.placementStep }
  var summary: String { "as each request says" }
  var keepsContent: Bool { true }

  /// The absolute path of the folder of the command.
  let directory: String
  let conflict: ConflictPolicy
  let scope: PathScope

  func process(_ artifact: Artifact, in context: ProcessingContext) async throws -> Artifact {
    try await mover(for: context.request).process(artifact, in: context)
  }

  func outputFolders(in context: ProcessingContext) -> [String] {
    (try? mover(for: context.request).outputFolders(in: context)) ?? []
  }

  /// The path that an artifact would get if nothing had it.
  func path(of artifact: Artifact, in context: ProcessingContext) throws(DownloadError) -> String {
    try mover(for: context.request).path(of: artifact, in: context) ?? artifact.name
  }

  private func mover(for request: DownloadRequest) throws(DownloadError) -> MoveInto {
    let steps = RequestSteps(request)
    // The folder of a request is below that of the command or of --move-into.
    let folder = (steps.folder ?? directory) + (request.destination.directory.map { "/" + $0 } ?? "")
    try scope.check(folder: folder)
    guard let template = steps.nameTemplate else { return MoveInto(folder, onConflict: conflict) }
    let mover = try MoveInto(template: Self.escaped(folder) + "/" + template, onConflict: conflict)
    // The part before the first field may have links and “..”.
    if let root = mover.templateRoot { try scope.check(folder: root) }
    return mover
  }

  private static func escaped(_ folder: String) -> String {
    folder.replacing("{", with: "{{").replacing("}", with: "}}")
  }

  /// Checks the value of `--name`.
  static func checked(template: String) throws(UsageError) -> String {
    guard template.utf8.first != UInt8(ascii: "/"),
      !template.utf8.split(separator: UInt8(ascii: "/")).contains(where: { $0.elementsEqual("..".utf8) })
    else {
      throw UsageError("--name is a path below the folder: choose the folder with --directory or --move-into")
    }
    do {
      _ = try MoveInto(template: "/" + template)
    } catch {
      throw UsageError("--name: \(error.message)")
    }
    return template
  }
}
