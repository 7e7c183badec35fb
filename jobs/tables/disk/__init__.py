"""Files and file systems below the tables: data files, files complete on the disk, a full disk, hard links."""
