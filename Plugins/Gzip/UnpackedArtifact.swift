package import DownpipeCore

extension Artifact {
  /// The file that a step has decompressed.
  ///
  /// - Parameter wrappers: The media types of compressed files, in lower case: they do not describe the contents.
  package func unpacked(at location: Location, named name: String, size: Int64, wrappers: Set<String>) -> Artifact {
    let type = mediaType.flatMap { type in
      wrappers.contains(type.prefix { $0 != ";" && $0 != " " }.lowercased()) ? nil : type
    }
    return Artifact(kind: .file, location: location, name: name, size: .known(size), mediaType: type)
  }
}
