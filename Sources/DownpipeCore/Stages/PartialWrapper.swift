/// A partial that wraps another one and passes on every call that it does not implement itself.
///
/// Requirements that later versions add are passed on too, also those with a default: a wrapper loses no ability of its base
/// because it leaves one out.
///
/// ```swift
/// /// Counts the bytes that are written.
/// final class CountingPartial: PartialWrapper {
///   let base: any Partial
///   let count = Atomic<Int64>(0)
///   init(_ base: any Partial) { self.base = base }
///   func write(_ bytes: RawSpan, at offset: Int64) throws {
///     count.wrappingAdd(Int64(bytes.byteCount), ordering: .relaxed)
///     try base.write(bytes, at: offset)
///   }
/// }
/// ```
/// A wrapper that changes what is read implements both ``Partial/read(at:count:)`` and ``Partial/read(at:into:)``, and
/// the marks, which are read back. The storage that makes it passes its base the wrapped partial in
/// ``Storage/publish(_:of:at:in:)``; see ``StorageWrapper``.
public protocol PartialWrapper: Partial {
  /// The wrapped partial.
  var base: any Partial { get }
}

extension PartialWrapper {
  /// The length of the base.
  public func size() throws -> Int64 { try base.size() }
  /// Writes to the base.
  public func write(_ bytes: RawSpan, at offset: Int64) throws { try base.write(bytes, at: offset) }
  /// Reads from the base.
  public func read(at offset: Int64, count: Int) throws -> [UInt8] { try base.read(at: offset, count: count) }
  /// Reads from the base into a buffer.
  public func read(at offset: Int64, into buffer: inout MutableRawSpan) throws -> Int {
    try base.read(at: offset, into: &buffer)
  }
  /// Cuts or extends the base.
  public func truncate(to size: Int64) throws { try base.truncate(to: size) }
  /// Makes the bytes of the base durable.
  public func synchronize() async throws { try await base.synchronize() }
  /// Gives the bytes of the base a name.
  public func persist() throws { try base.persist() }
  /// Whether the base has a name.
  public var isNamed: Bool { base.isNamed }
  /// Ends writing to the base.
  public func finish() throws { try base.finish() }
  /// Closes the base.
  public func close() throws { try base.close() }
  /// Returns the artifact of the base.
  public func artifact(name: String, mediaType: String?) throws -> Artifact {
    try base.artifact(name: name, mediaType: mediaType)
  }
  /// Lets the base take over a file.
  public func adopt(_ path: String) throws -> Bool { try base.adopt(path) }
  /// Lets the base copy a file.
  public func copy(_ path: String, count: Int64) async throws -> Int64? { try await base.copy(path, count: count) }
  /// Copies the bytes of the base to a file.
  public func export(to path: String, count: Int64) async throws { try await base.export(to: path, count: count) }
  /// Returns a mark of the base.
  public func mark(endingAt offset: Int64, from start: Int64) throws -> BlockMark? {
    try base.mark(endingAt: offset, from: start)
  }
  /// Whether the bytes of the base match the mark.
  public func matches(_ mark: BlockMark) throws -> Bool { try base.matches(mark) }
}
