public import DownpipeCore
public import Foundation

extension AppleResumeData {
  /// Writes the resume data.
  ///
  /// - Parameters:
  ///   - format: XML or binary; when `nil`, the format that was read.
  ///   - archived: Whether to wrap the list in a keyed archive; when `nil`, as it was read. The archived requests are
  ///     converted to the form that the systems with this kind of list read.
  /// - Throws: `DownloadError` with the code `resumeData` when the result would be larger than 1 MiB, or when the
  ///   format does not support a value.
  public func data(format: Format? = nil, archived: Bool? = nil) throws(DownloadError) -> Data {
    let archived = archived ?? isArchived
    var info = info
    for (key, request) in [(Key.currentRequest, currentRequest), (Key.originalRequest, originalRequest)] {
      guard var request else { continue }
      if archived != isArchived { request.set(form: archived ? .named : .numbered) }
      // An unchanged request keeps its bytes.
      if request.isChanged { info[key] = .data(try request.data()) }
    }
    guard archived else {
      if let key = opaqueKeys.first {
        throw .resumeData("its \(key.prefix(64).escaped) is an object, which only a keyed archive supports")
      }
      return try PropertyList.dictionary(info).resumeData(format ?? self.format)
    }
    return try wrapped(info).list.resumeData(format ?? self.format)
  }

  /// The values in a keyed archive: the archive that was read, with the changes.
  private func wrapped(_ info: [String: PropertyList]) throws(DownloadError) -> KeyedArchive {
    var archive =
      archive
      ?? KeyedArchive(
        rootName: KeyedArchive.systemRootName, classes: ["NSMutableDictionary", "NSDictionary", "NSObject"])
    var entries = self.archive == nil ? [] : try archive.entries(archive.root) ?? []
    // Nulls stay, and so do the objects that have no property list value.
    entries.removeAll { archivedInfo[$0.key] != nil && info[$0.key] == nil }
    let places = Dictionary(entries.indices.map { (entries[$0].key, $0) }) { first, _ in first }
    for (key, value) in info.sorted(by: { $0.key < $1.key }) where archivedInfo[key] != value || self.archive == nil {
      // The number would refer to an unrelated object of the archive.
      guard !value.holdsReference else {
        throw .resumeData("its \(key.prefix(64).escaped) contains a reference, which cannot be added to an archive")
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

extension PropertyList {
  func resumeData(_ format: AppleResumeData.Format) throws(DownloadError) -> Data {
    try DownloadError.convert { () throws(PropertyListError) in try write(format == .xml ? .xml : .binary) }
  }
}
