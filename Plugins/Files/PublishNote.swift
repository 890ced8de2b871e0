import DownpipePOSIX

/// What is written down before a file appears, so that a second run after a crash knows whether the
/// first one got that far.
struct PublishNote: Hashable {
  /// How the artifact takes its name.
  enum Manner: String {
    /// By one call that succeeds or leaves everything as it was.
    case atOnce = "move"
    /// By taking the name with something empty first, which the artifact then replaces.
    case claiming = "claim"
  }

  /// How.
  var manner: Manner
  /// The inode of what is to appear; renaming and linking keep it. The device is left out: its number
  /// changes from one start of the system to the next, and the target's path stands for it.
  var inode: UInt64
  /// Its size in bytes; 0 for a folder, whose size says nothing.
  var size: Int64
  /// Where it is to appear, relative to the publisher's root, which may be elsewhere the next time.
  var target: String

  /// Writes down an intent.
  init(manner: Manner, status: FileStatus, target: String) {
    self.manner = manner
    inode = status.inode
    size = status.kind == .folder ? 0 : status.size
    self.target = target
  }

  /// Reads what ``text`` wrote; `nil` for anything else.
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

  /// The note as it is kept.
  var text: String { "publish1 \(manner.rawValue) \(inode) \(size) \(target)" }

  /// Whether an entry is what the note speaks of.
  func describes(_ status: FileStatus) -> Bool {
    status.inode == inode && (status.kind == .folder ? 0 : status.size) == size
      && (status.kind == .folder || status.kind == .file)
  }
}
