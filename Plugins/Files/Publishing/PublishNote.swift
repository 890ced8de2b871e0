import DownpipePOSIX

/// A note that is stored before a file is published, so that a second run after a crash detects whether the first one
/// published it.
struct PublishNote: Hashable {
  /// How the artifact takes its name.
  enum Manner: String {
    /// By one call, which succeeds or changes nothing.
    case atOnce = "move"
    /// By creating an empty file or folder under the name, which the artifact then replaces.
    case claiming = "claim"
    /// Not at all: a file that was there before has its bytes, and is used.
    case reusing = "reuse"
  }

  var manner: Manner
  /// The inode, which renaming and linking keep. The device number is left out, since it can change when the system
  /// restarts; the path of the target stands for it.
  var inode: UInt64
  /// The size in bytes; 0 for a folder.
  var size: Int64
  /// The path of the target, relative to the publisher's root, which can be moved.
  var target: String

  init(manner: Manner, status: FileStatus, target: String) {
    self.manner = manner
    inode = status.inode
    size = status.kind == .folder ? 0 : status.size
    self.target = target
  }

  /// Parses ``text``; `nil` for any other text.
  init?(_ text: String) {
    let parts = text.split(separator: " ", maxSplits: 4, omittingEmptySubsequences: false)
    guard parts.count == 5, parts[0] == "publish1", let manner = Manner(rawValue: String(parts[1])),
      let inode = UInt64(parts[2]), let size = Int64(parts[3]), !parts[4].isEmpty
    else { return nil }
    self.manner = manner
    self.inode = inode
    self.size = size
    target = String(parts[4])
  }

  /// The note as the ledger stores it.
  var text: String { "publish1 \(manner.rawValue) \(inode) \(size) \(target)" }

  /// Whether an entry is the one in the note.
  func describes(_ status: FileStatus) -> Bool {
    status.inode == inode && (status.kind == .folder ? 0 : status.size) == size
      && (status.kind == .folder || status.kind == .file)
  }
}
