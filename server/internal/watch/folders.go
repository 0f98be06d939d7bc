package watch

import (
	"os"
	"path/filepath"
	"strings"
)

// mostLinks is how many links the usual systems follow.
const mostLinks = 40

// foldersOf returns the folders whose entries decide what an absolute path is: that of each symbolic
// link on the way, and that of the file in the end, or of the first part that is missing.
func foldersOf(path string) []string {
	var folders []string
	folder, parts := split(path)
	for links := 0; len(parts) > 0; {
		part := parts[0]
		parts = parts[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			folder = filepath.Dir(folder)
			continue
		}
		entry := filepath.Join(folder, part)
		info, err := os.Lstat(entry)
		if err != nil {
			return append(folders, folder)
		}
		if info.Mode().Type() == os.ModeSymlink {
			folders = append(folders, folder)
			target, err := os.Readlink(entry)
			if links++; err != nil || links > mostLinks {
				return folders
			}
			var way []string
			if filepath.IsAbs(target) {
				folder, way = split(target)
			} else {
				way = strings.Split(filepath.ToSlash(target), "/")
			}
			parts = append(way, parts...)
			continue
		}
		if len(parts) == 0 {
			folders = append(folders, folder)
		}
		folder = entry
	}
	return folders
}

// split returns the root that an absolute path starts from, and the parts of the way.
func split(path string) (root string, parts []string) {
	volume := filepath.VolumeName(path)
	return volume + string(filepath.Separator), strings.Split(filepath.ToSlash(path[len(volume):]), "/")
}
