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
  /// The artifact's companions, in their order.
  var companions: [Companion] = []

  /// What a companion is known by: its inode and its size; zeros for one that is not published with its artifact.
  struct Companion: Hashable {
    var inode: UInt64 = 0
    var size: Int64 = 0
  }

  init(manner: Manner, status: FileStatus, target: String, companions: [Companion] = []) {
    self.manner = manner
    inode = status.inode
    size = status.kind == .folder ? 0 : status.size
    self.target = target
    self.companions = companions
  }

  /// Parses ``text``; `nil` for any other text.
  init?(_ text: String) {
    let hasCompanions = text.hasPrefix("publish2 ")
    let count = hasCompanions ? 6 : 5
    let parts = text.split(separator: " ", maxSplits: count - 1, omittingEmptySubsequences: false)
    guard parts.count == count, hasCompanions || parts[0] == "publish1",
      let manner = Manner(rawValue: String(parts[1])), let inode = UInt64(parts[2]), let size = Int64(parts[3]),
      let target = parts.last, !target.isEmpty
    else { return nil }
    if hasCompanions {
      for part in parts[4].split(separator: ",") {
        let numbers = part.split(separator: ":")
        guard numbers.count == 2, let inode = UInt64(numbers[0]), let size = Int64(numbers[1]) else { return nil }
        companions.append(Companion(inode: inode, size: size))
      }
    }
    self.manner = manner
    self.inode = inode
    self.size = size
    self.target = String(target)
  }

  /// The note as the ledger stores it.
  var text: String {
    let version = companions.isEmpty ? "publish1" : "publish2"
    let list = companions.isEmpty ? "" : companions.map { "\($0.inode):\($0.size)" }.joined(separator: ",") + " "
    return "\(version) \(manner.rawValue) \(inode) \(size) \(list)\(target)"
  }

  /// Whether an entry is the one in the note.
  func describes(_ status: FileStatus) -> Bool {
    status.inode == inode && (status.kind == .folder ? 0 : status.size) == size
      && (status.kind == .folder || status.kind == .file)
  }

  /// Whether an entry is the companion with an index.
  func describes(_ status: FileStatus, companion index: Int) -> Bool {
    status.kind == .file && companions.indices.contains(index)
      && companions[index] == Companion(inode: status.inode, size: status.size)
  }
}
