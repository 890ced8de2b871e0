public import DownpipeCore
public import Foundation

extension AppleResumeData {
  /// Writes the resume data.
  ///
  /// - Parameters:
  ///   - format: XML or binary; as it was read unless given.
  ///   - archived: Whether to wrap the list in a keyed archive; as it was read unless given. The archived requests
  ///     change with it: each kind goes with the form that its systems read.
  /// - Throws: ``DownloadError`` with the code `resumeData` when it would be larger than 1 MiB, or when a value has no
  ///   place in the format asked for.
  public func data(format: Format? = nil, archived: Bool? = nil) throws(DownloadError) -> Data {
    let archived = archived ?? isArchived
    var info = info
    for (key, request) in [(Key.currentRequest, currentRequest), (Key.originalRequest, originalRequest)] {
      guard var request else { continue }
      if archived != isArchived { request.set(form: archived ? .named : .numbered) }
      // Nothing is gained by other bytes for the same request.
      if request.isChanged { info[key] = .data(try request.data()) }
    }
    guard archived else {
      if let key = opaqueKeys.first {
        throw .resumeData("its \(key.prefix(64).escaped) is an object, which only a keyed archive can hold")
      }
      return try PropertyList.dictionary(info).write(format ?? self.format)
    }
    return try wrapped(info).list.write(format ?? self.format)
  }

  /// The values in a keyed archive: the one that was read, with what has changed.
  private func wrapped(_ info: [String: PropertyList]) throws(DownloadError) -> KeyedArchive {
    var archive =
      archive
      ?? KeyedArchive(
        rootName: KeyedArchive.systemRootName, classes: ["NSMutableDictionary", "NSDictionary", "NSObject"])
    var entries = self.archive == nil ? [] : try archive.entries(archive.root) ?? []
    // Null stays, and so does what only the archive can hold.
    entries.removeAll { archivedInfo[$0.key] != nil && info[$0.key] == nil }
    let places = Dictionary(entries.indices.map { (entries[$0].key, $0) }) { first, _ in first }
    for (key, value) in info.sorted(by: { $0.key < $1.key }) where archivedInfo[key] != value || self.archive == nil {
      // It would lead to an object of the archive that it was never meant for.
      guard !value.holdsReference else {
        throw .resumeData("its \(key.prefix(64).escaped) holds a reference, which cannot be put into an archive")
      }
      let reference = archive.insert(value)
      if let at = places[key] {
        entries[at].value = reference
      } else {
        entries.append((key, reference))
      }
    }
    let keys = entries.map { archive.insert(.string($0.key)) }
    archive.root["NS.keys"] = .array(keys)
    archive.root["NS.objects"] = .array(entries.map(\.value))
    return archive
  }
}
