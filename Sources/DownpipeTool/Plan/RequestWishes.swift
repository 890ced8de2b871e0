import Downpipe
import Foundation

/// What a command asks to be done with a file afterwards. It travels with the request, so that `resume` and a
/// later run treat each file as the command that asked for it wanted.
struct RequestWishes: Sendable, Hashable {
  /// Whether the file is unpacked.
  var unpacks = false
  /// The absolute path of the folder it goes to in the end.
  var folder: String?

  private static let folderKey = "downpipe.move-into"

  init(unpacks: Bool = false, folder: String? = nil) {
    self.unpacks = unpacks
    self.folder = folder
  }

  /// The wishes that came with a request.
  init(_ request: DownloadRequest) {
    unpacks = request.steps.contains("Gunzip")
    folder = request.metadata[Self.folderKey]
  }

  /// Sends the wishes along with a request.
  func attach(to request: inout DownloadRequest) {
    var steps: Set = ["VerifyChecksum"]
    if unpacks { steps.insert("Gunzip") }
    if let folder {
      steps.insert("MoveInto")
      request.metadata[Self.folderKey] = folder
    }
    request.steps = .only(steps)
  }
}

extension DownloadRequest {
  private static let givenURLKey = "downpipe.url"

  /// The URL as it was typed, secrets included: the next command with the same URL means the same download.
  var givenURL: String {
    get { metadata[Self.givenURLKey] ?? url.absoluteString }
    set { if newValue != url.absoluteString { metadata[Self.givenURLKey] = newValue } }
  }

  /// The URL as it was typed, without its secrets: what is shown, to people and to scripts.
  var shownURL: String { givenURL.redactedURL }
}
