import Downpipe
import Foundation

/// What happens to a file after its download. The request carries it, so that `resume` and later commands treat each
/// file as the command that asked for it.
struct RequestSteps: Sendable, Hashable {
  var gunzips = false
  /// The absolute path of the folder that the file is moved into.
  var folder: String?

  private static let folderKey = "downpipe.move-into"

  init(gunzips: Bool = false, folder: String? = nil) {
    self.gunzips = gunzips
    self.folder = folder
  }

  init(_ request: DownloadRequest) {
    gunzips = request.steps.contains("Gunzip")
    folder = request.metadata[Self.folderKey]
  }

  func attach(to request: inout DownloadRequest) {
    var steps: Set = ["VerifyChecksum"]
    if gunzips { steps.insert("Gunzip") }
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

  /// The URL as it was typed, without secrets, by which people and scripts know the download.
  var shownURL: String { givenURL.identifyingURL }
}
