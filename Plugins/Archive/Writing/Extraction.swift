#if Archive
  import DownpipeCore
  import DownpipeGzip
  import DownpipePOSIX

  /// One run of ``Unarchive``: writes the chosen entries of an archive into a folder.
  struct Extraction {
    let options: Unarchive
    let reader: ArchiveReader
    let folder: ConfinedFolder
    let budget: OutputLimit
    private let progress: InputProgress?
    private let willWrite: ((Int64) throws -> Void)?
    private let paths: EntryPath
    private var names = EntryNames()
    private var links = LinkTargets()
    /// Folders whose attributes are set at the end: what is written into them changes their times.
    private var folders: [(path: String, attributes: ArchiveEntry.Attributes)] = []
    /// The bytes of the paths and targets in ``folders`` and ``links``.
    private var keptBytes: Int64 = 0
    private var entryCount: Int64 = 0
    private var hasChosen = false
    /// The bytes of entries that are left out.
    private var skipped: Int64 = 0
    /// The bytes of all files.
    private(set) var byteCount: Int64 = 0

    init(
      _ options: Unarchive, _ reader: ArchiveReader, into folder: ConfinedFolder, budget: OutputLimit,
      progress: InputProgress? = nil, willWrite: ((Int64) throws -> Void)? = nil
    ) {
      self.progress = progress
      self.willWrite = willWrite
      self.options = options
      self.reader = reader
      self.folder = folder
      self.budget = budget
      paths = EntryPath(format: reader.format, limits: options.limits)
    }

    /// Unpacks the whole archive.
    ///
    /// - Throws: `DownloadError`, `CancellationError`. What was written stays for the caller to remove.
    mutating func run() throws {
      while let entry = try reader.next() {
        try Task.checkCancellation()
        entryCount += 1
        guard entryCount <= options.limits.entries else {
          throw DownloadError(
            .tooLarge, ArchiveReader.tooManyEntries(options.limits.entries) + "; it is \(shown(entry.name))")
        }
        progress?.didMakeItem()
        if options.chooses(EntryPath.loose(entry.name)) {
          try unpack(entry)
        } else {
          try leaveOut(entry)
        }
      }
      try reader.finish()
      if !options.only.isEmpty, !hasChosen {
        throw DownloadError(
          .processing, "no entry of the archive matches \(options.only.map(\.text).joined(separator: ", "))")
      }
      try links.check()
      try links.forEach { components, target in try folder.makeLink(components, to: target) }
      try finishFolders()
    }

    /// Reads the data of an entry that is left out, block by block: it can be as long as a bomb.
    private mutating func skip(_ entry: ArchiveEntry) throws {
      guard !reader.skipsWithoutReading else { return }
      while let block = try reader.block() {
        try Task.checkCancellation()
        skipped += Int64(block.bytes.count)
        guard skipped <= budget.withHeaders.byteCount else {
          throw DownloadError(.tooLarge, "\(budget.explanation) (at the entry \(shown(entry.name)), which is left out)")
        }
      }
    }

    /// Leaves an entry out. Archives of cpio have the data of a file at the last of its names: if that one is left out, the
    /// first one gets them.
    private mutating func leaveOut(_ entry: ArchiveEntry) throws {
      guard reader.isCPIO, case .hardLink(let name) = entry.kind, let size = entry.size, size > 0,
        let target = (try? target(name)) ?? nil, names.kind(of: target) == .file, let first = try reader.block()
      else { return try skip(entry) }
      try refill(target, entry, first: first)
    }

    /// Writes the data of a file again.
    private mutating func refill(
      _ place: [String], _ entry: ArchiveEntry, first: (bytes: UnsafeRawBufferPointer, offset: Int64)
    ) throws {
      let file = try folder.openFile(place)
      try reporting("write", folder.path(place)) { () throws(SystemError) in try file.truncate(to: 0) }
      try fill(file, entry, at: place, first: first)
    }

    private mutating func unpack(_ entry: ArchiveEntry) throws {
      hasChosen = true
      if entry.isEncrypted { throw DownloadError.encrypted(", at entry \(entryCount), \(shown(entry.name))") }
      guard let place = try place(of: entry.name, isFolder: entry.kind == .folder) else {
        // What was in the folder is in the root now.
        if entry.kind == .folder, !options.flattens { try restrict(folder.folder([]), as: entry, at: []) }
        return try leaveOut(entry)
      }
      switch entry.kind {
      case .folder:
        // Nothing says that a folder has no data.
        try skip(entry)
        guard !options.flattens else { return }
        if !place.isEmpty { _ = try take(place, .folder, entry) }
        try restrict(folder.folder(place), as: entry, at: place)
        if keepsAttributes, !place.isEmpty {
          let path = place.joined(separator: "/")
          try keep(path, for: entry)
          folders.append((path, entry.attributes))
        }
      case .file:
        try replaceEarlier(place, .file, entry)
        let file = try folder.makeFile(place, permissions: permissions(of: entry.attributes))
        try fill(file, entry, at: place)
      case .symbolicLink(let target):
        try unpackLink(place, to: target, entry)
      case .hardLink(let target):
        try unpackHardLink(place, to: target, entry)
      case .special:
        throw DownloadError(
          .unsafePath,
          "the entry \(shown(entry.name)) of the archive is a device, a FIFO or a socket, which is never "
            + "made: leave it out with Unarchive(except:)")
      }
    }

    /// Where an entry goes: its components without the leading ones, or its name alone. `nil` if nothing is left.
    private func place(of name: String, isFolder: Bool) throws -> [String]? {
      var components = try paths.components(of: name)
      guard !components.isEmpty || isFolder else {
        throw DownloadError(.damaged, "the entry \(shown(name)) of the archive has no name")
      }
      let isRoot = components.isEmpty
      components = Array(components.dropFirst(options.stripsComponents))
      if components.isEmpty { return isRoot ? [] : nil }
      return options.flattens ? components.suffix(1) : components
    }

    // MARK: Names

    private mutating func take(
      _ place: [String], _ kind: EntryNames.Kind, _ entry: ArchiveEntry
    ) throws -> EntryNames.Kind? {
      do {
        let earlier = try names.take(place, kind, origin: EntryPath.loose(entry.name).joined(separator: "/"))
        guard let earlier else {
          // Also folders that only the paths of others name.
          guard Int64(names.count) <= options.limits.entries else {
            throw DownloadError(
              .tooLarge,
              ArchiveReader.tooManyEntries(options.limits.entries, " with the folders in their paths") + "; it is "
                + shown(entry.name))
          }
          return nil
        }
        if kind == .folder || (earlier.isSameEntry && reader.format.replacesEntries) { return earlier.kind }
        throw EntryNames.Conflict.spelling
      } catch let error as EntryNames.Conflict {
        let reason =
          switch error {
          case .spelling:
            "has the name of an earlier entry, or differs from it only in case or Unicode form: file systems of Macs and "
              + "Windows would take both for one file"
          case .notAFolder: "is below an earlier entry that is not a folder, or has its name"
          case .isFolder: "has the name of a folder"
          }
        throw DownloadError(
          .unsafePath,
          "the entry \(shown(entry.name)) of the archive \(reason). Leave it out with Unarchive(except:), "
            + "or unpack the archive yourself")
      }
    }

    /// Takes the name of a file or link, and removes an earlier entry of that name, as the archive wants it.
    private mutating func replaceEarlier(_ place: [String], _ kind: EntryNames.Kind, _ entry: ArchiveEntry) throws {
      switch try take(place, kind, entry) {
      case .file: try folder.unlink(place)
      case .link: links.remove(place)
      case .folder, nil: break
      }
    }

    /// Counts a path, and the target of a link, that are kept in memory until the end.
    private mutating func keep(_ texts: String..., for entry: ArchiveEntry) throws {
      keptBytes += texts.reduce(0) { $0 + Int64($1.utf8.count) }
      guard keptBytes <= options.pathBytes else {
        throw DownloadError(
          .tooLarge,
          "the paths of the folders and links of the archive have more than \(options.pathBytes) bytes "
            + "(Unarchive.Limits.pathBytes), at \(shown(entry.name)): unpack the archive yourself if you trust it")
      }
    }

    // MARK: Files

    /// Writes the data of an entry. Every block is counted before it is written.
    private mutating func fill(
      _ file: OpenFile, _ entry: ArchiveEntry, at place: [String],
      first: (bytes: UnsafeRawBufferPointer, offset: Int64)? = nil
    ) throws {
      var end: Int64 = 0
      var next = try first ?? reader.block()
      while let block = next {
        try Task.checkCancellation()
        let (blockEnd, isTooFar) = block.offset.addingReportingOverflow(Int64(block.bytes.count))
        guard block.offset >= end, !isTooFar else {
          throw DownloadError(.damaged, "the data of the entry \(shown(entry.name)) overlaps: the archive is damaged")
        }
        try count(blockEnd - end, entry)
        try reporting("write", folder.path(place)) { () throws(SystemError) in
          try file.write(block.bytes, at: block.offset)
        }
        end = blockEnd
        next = try reader.block()
      }
      // The hole at the end of a sparse file.
      if reader.format == .stream, let size = entry.size, size > end {
        try count(size - end, entry)
        try reporting("write", folder.path(place)) { () throws(SystemError) in try file.truncate(to: size) }
      }
      try setAttributes(file, entry.attributes, at: place)
      try reporting("close", folder.path(place)) { () throws(SystemError) in try file.close() }
    }

    private mutating func count(_ bytes: Int64, _ entry: ArchiveEntry) throws {
      let (sum, isTooMuch) = byteCount.addingReportingOverflow(bytes)
      guard !isTooMuch, sum <= budget.byteCount else {
        throw DownloadError(.tooLarge, "\(budget.explanation) (at the entry \(shown(entry.name)))")
      }
      try willWrite?(sum)
      byteCount = sum
    }

    // MARK: Links

    private mutating func unpackLink(_ place: [String], to target: String, _ entry: ArchiveEntry) throws {
      try skip(entry)
      guard try allowsLink(entry), !options.flattens else { return }
      guard !target.isEmpty, target.utf8.count <= options.limits.pathLength else {
        throw DownloadError(
          target.isEmpty ? .damaged : .tooLarge,
          "the target of the link \(shown(entry.name)) has \(target.utf8.count) bytes, and the limit is "
            + "\(options.limits.pathLength) (Unarchive.Limits.pathLength)")
      }
      try replaceEarlier(place, .link, entry)
      // Made at the end: nothing can be written through it.
      try keep(place.joined(separator: "/"), target, for: entry)
      links.add(place, to: target)
      _ = try folder.folder(place.dropLast())
    }

    private mutating func unpackHardLink(_ place: [String], to name: String, _ entry: ArchiveEntry) throws {
      guard try allowsLink(entry) else { return try leaveOut(entry) }
      let target: [String]?
      do throws(DownloadError) { target = try self.target(name) } catch {
        throw DownloadError(
          error.code, "the hard link \(shown(entry.name)) of the archive leads to \(shown(name)): \(error.message)")
      }
      guard let target, let kind = names.kind(of: target), kind != .folder else {
        // The target may be left out, too.
        let isWhole =
          options.only.isEmpty && options.except.isEmpty && options.stripsComponents == 0 && !options.flattens
        throw DownloadError(
          isWhole ? .damaged : .processing,
          "the hard link \(shown(entry.name)) of the archive leads to \(shown(name)), which is not a file before it"
            + (isWhole ? "" : ", or was left out: choose its target, too, strip fewer components, or do not flatten"))
      }
      if target == place { return try leaveOut(entry) }
      if kind == .link {
        try replaceEarlier(place, .link, entry)
        if let path = links.target(of: target) {
          try keep(place.joined(separator: "/"), path, for: entry)
          links.add(place, to: path)
        }
        return try skip(entry)
      }
      try replaceEarlier(place, .file, entry)
      try folder.link(target, to: place)
      // Archives of cpio have the data at the last name of a file, those of pax at any.
      guard let size = entry.size, size > 0, let first = try reader.block() else { return }
      try refill(place, entry, first: first)
    }

    private func target(_ name: String) throws(DownloadError) -> [String]? {
      do {
        return try place(of: name, isFolder: false)
      } catch let error as DownloadError {
        throw error
      } catch {
        throw DownloadError(.processing, "\(error)")
      }
    }

    private func allowsLink(_ entry: ArchiveEntry) throws -> Bool {
      switch options.links {
      case .inside: return true
      case .skip: return false
      case .refuse:
        throw DownloadError(
          .unsafePath,
          "the entry \(shown(entry.name)) of the archive is a link, which Unarchive(links: .refuse) does not "
            + "allow")
      }
    }

    // MARK: Attributes

    private var keepsAttributes: Bool { options.times == .keep || options.modes == .keep || options.owners == .keep }

    private func finishFolders() throws {
      // In the order of the archive: a later entry of a folder has its newer attributes.
      for (path, attributes) in folders {
        try Task.checkCancellation()
        let components = EntryPath.loose(path)
        // The owner of the process must be able to move and to remove the folder.
        try setAttributes(try folder.folder(components), attributes, at: components, adding: 0o700)
      }
    }

    /// The most that a new file may allow, before the umask. It has them from the start: others cannot read a private file
    /// while it is written.
    private func permissions(of attributes: ArchiveEntry.Attributes) -> UInt32 {
      let isExecutable = attributes.permissions & 0o100 != 0
      switch options.modes {
      case .executable: return attributes.permissions & (isExecutable ? 0o777 : 0o666) | 0o400
      case .keep: return attributes.permissions & 0o777 | 0o400
      case .drop: return 0o666
      }
    }

    /// Takes from a folder the permissions that it does not have in the archive. The owner can always use it.
    private func restrict(_ folder: OpenFile, as entry: ArchiveEntry, at place: [String]) throws {
      guard options.modes != .drop else { return }
      try reporting("set the attributes of", self.folder.path(place)) { () throws(SystemError) in
        let present = try folder.status().permissions
        let allowed = present & .init(entry.attributes.permissions) | 0o700
        if allowed != present { try folder.setPermissions(allowed) }
      }
    }

    /// Never set: the bits for another user or group, and the sticky bit.
    private func setAttributes(
      _ file: OpenFile, _ attributes: ArchiveEntry.Attributes, at place: [String], adding permissions: UInt32 = 0o400
    ) throws {
      let system = folder.system
      try reporting("set the attributes of", folder.path(place)) { () throws(SystemError) in
        if options.owners == .keep {
          try system.setOwner(
            file.descriptor, user: UInt32(truncatingIfNeeded: attributes.owner.user),
            group: UInt32(truncatingIfNeeded: attributes.owner.group))
        }
        if options.modes == .keep {
          try file.setPermissions(.init(attributes.permissions & 0o777 | permissions))
        }
      }
      if options.times == .keep, let (seconds, nanoseconds) = attributes.modified {
        // Some file systems do not store such times, and the file is complete without them.
        try? system.setModified(file.descriptor, seconds: seconds, nanoseconds: nanoseconds)
      }
    }
  }
#endif
