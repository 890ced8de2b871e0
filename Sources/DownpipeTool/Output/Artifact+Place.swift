import Downpipe
import Foundation

extension Artifact {
  /// The path of the file, or its URL if it is on another machine; `nil` in memory.
  var place: String? { remoteURL?.redacted ?? path }
}
