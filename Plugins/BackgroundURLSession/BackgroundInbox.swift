import DownpipeCore
import DownpipePOSIX
import Foundation

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// A finished file in the inbox, with its tag and the head of its answer.
struct InboxEntry: Hashable, Sendable {
  let name: String
  let tag: TransferTag
  let answer: FinishedAnswer
}

/// The folder in which finished files wait until a download takes them. The system deletes its own copy when the
/// delegate returns, and the app may end before a download opens the URL.
///
/// A file and its note have the names `downpipe-ID-RANDOM.body` and `….note`. The note is written first, so a file
/// without a note, like a note without a file, is left over from an interrupted operation.
struct BackgroundInbox: Sendable {
  let path: String
  /// After this time without an opening the download of a file no longer exists.
  static let timeLimit: TimeInterval = 7 * 86_400
  private static let maximumNote = 1 << 20

  private struct Note: Codable {
    var version = 1
    var tag: TransferTag
    var answer: FinishedAnswer
    /// Seconds since 1970.
    var date: Double
  }

  /// Creates the folder if it is missing.
  /// - Throws: ``DownloadError`` with `.permission`, `.noSpace` or `.storage`.
  init(_ path: String) throws {
    self.path = path
    try OpenFolder.makeFolders(path, durability: .process, system: .system)
  }

  /// The path of the inbox of a session: a subfolder of `root`, or of the user's caches folder.
  ///
  /// - Throws: ``DownloadError`` with `.invalidPipeline` for an identifier that cannot be a folder name.
  static func path(of identifier: String, below root: String?) throws(DownloadError) -> String {
    let plain = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.".utf8)
    let name = identifier.utf8.prefix(300).enumerated().map { index, byte in
      plain.contains(byte) && (index > 0 || byte != UInt8(ascii: "."))
        ? String(UnicodeScalar(byte)) : "%" + String(Int(byte) + 256, radix: 16, uppercase: true).dropFirst()
    }.joined()
    guard !name.isEmpty, name.utf8.count <= 240 else {
      throw DownloadError(
        .invalidPipeline, "the identifier of a background session has 1 to 240 bytes: use one like org.example.films")
    }
    if let root { return PathText.join(PathText.absolute(root), name) }
    let caches = FileManager.default.urls(for: .cachesDirectory, in: .userDomainMask).first ?? .temporaryDirectory
    return caches.appending(path: "downpipe/\(name)", directoryHint: .notDirectory).path(percentEncoded: false)
  }

  /// The path of a file.
  func body(_ name: String) -> String { "\(path)/\(name).body" }
  private func note(_ name: String) -> String { "\(path)/\(name).note" }

  /// Moves a file into the inbox.
  /// - Returns: The name of the file in the inbox.
  /// - Throws: ``DownloadError`` with `.permission`, `.noSpace` or `.storage`. Nothing is left in the inbox then.
  func keep(_ temporary: String, _ tag: TransferTag, _ answer: FinishedAnswer, now: Date = Date()) throws -> String {
    let readable = String(
      String.UnicodeScalarView(
        tag.id.rawValue.unicodeScalars.lazy.filter { $0.isASCII && $0.properties.isAlphabetic || ("0"..."9") ~= $0 }
          .prefix(40)))
    let name = "downpipe-\(readable)-\(DownloadID().rawValue)"
    do {
      let content = try JSONEncoder().encode(Note(tag: tag, answer: answer, date: now.timeIntervalSince1970))
      try reporting("keep the finished file in", path) {
        try FileTree(system: .system).write(Array(content), to: Entry(note(name)), durability: .process)
        try move(temporary, to: body(name))
      }
    } catch {
      remove(name)
      throw error
    }
    return name
  }

  /// Renames a file, or copies it when the inbox is on another file system.
  private func move(_ temporary: String, to path: String) throws {
    do throws(SystemError) {
      try FileSystem.system.rename(Entry(temporary), to: Entry(path))
    } catch {
      guard error.code == EXDEV else { throw error }
      try FileTree(system: .system).copy(Entry(temporary), to: Entry(path), durability: .process)
      try? FileSystem.system.unlink(Entry(temporary))
    }
  }

  /// Deletes a file and its note, if they exist.
  func remove(_ name: String) {
    // The file first: if the process ends in between, the next start deletes the note.
    try? FileSystem.system.unlink(Entry(body(name)))
    try? FileSystem.system.unlink(Entry(note(name)))
  }

  /// The size of a file; `nil` when it does not exist.
  func size(_ name: String) -> Int64? { regularFile(body(name))?.size }

  /// Lists the files in the inbox. Deletes unusable entries: files or notes without the other, invalid notes, and old
  /// files. Files with other names stay.
  func load(now: Date = Date()) -> [InboxEntry] {
    var names: Set<String> = []
    for file in (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? [] {
      guard file.hasPrefix("downpipe-"), file.hasSuffix(".body") || file.hasSuffix(".note") else { continue }
      names.insert(String(file.dropLast(5)))
    }
    var entries: [InboxEntry] = []
    for name in names.sorted() {
      if let note = readNote(name), regularFile(body(name)) != nil,
        abs(now.timeIntervalSince1970 - note.date) <= Self.timeLimit
      {
        entries.append(InboxEntry(name: name, tag: note.tag, answer: note.answer))
      } else {
        remove(name)
      }
    }
    return entries
  }

  private func readNote(_ name: String) -> Note? {
    guard let file = regularFile(note(name)), file.size <= Self.maximumNote,
      let content = try? OpenFile(reading: note(name), followingLink: false).read(Int(file.size), at: 0),
      let note = try? JSONDecoder().decode(Note.self, from: Data(content)),
      note.version == 1, note.tag.isValid, note.answer.bringsBytes
    else { return nil }
    return note
  }

  /// The status of a regular file; `nil` for links, folders, pipes and missing files.
  private func regularFile(_ path: String) -> FileStatus? {
    guard let status = try? FileSystem.system.status(Entry(path)), status.kind == .file else { return nil }
    return status
  }
}
