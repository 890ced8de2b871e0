import Downpipe
import Foundation

/// What an earlier run has published.
enum FinishedFile {
  /// Whether it is still what the ledger says: a file of the recorded size, or a folder. A name alone proves nothing:
  /// the file may have been cut, or another one put in its place.
  static func isUnchanged(_ artifact: Artifact) -> Bool {
    guard let path = artifact.path else { return true }
    guard artifact.kind == .file else { return Folder.kind(path) == .directory }
    guard Folder.kind(path) == .file else { return false }
    // A recorded time of modification will be compared here, too.
    guard let size = artifact.size.bytes else { return true }
    return Folder.size(ofFile: path) == size
  }
}
