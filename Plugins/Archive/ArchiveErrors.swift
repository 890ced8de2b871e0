#if Archive
  public import DownpipeCore

  extension DownloadError.Code {
    /// The archive is encrypted, and ``Unarchive`` has no passwords. Another download would have the same result.
    public static let encrypted = DownloadError.Code("encrypted")
  }

  extension DownloadError {
    static func encrypted(_ place: String) -> DownloadError {
      DownloadError(
        .encrypted,
        "the archive is encrypted\(place), and Unarchive has no passwords: keep the file as it is, without the step, and "
          + "unpack it with a program that asks for the password")
    }
  }

  /// The text of a name for messages: short, and without characters that change the terminal or the reading direction.
  func shown(_ name: String) -> String {
    let scalars = name.unicodeScalars.prefix(120).map { scalar -> Unicode.Scalar in
      switch scalar.properties.generalCategory {
      case .control, .format, .lineSeparator, .paragraphSeparator: "?"
      default: scalar
      }
    }
    return "“\(String(String.UnicodeScalarView(scalars)))\(scalars.count == 120 ? "…" : "")”"
  }
#endif
