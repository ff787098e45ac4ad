package filestore

import "syscall"

// statFileSystem returns the kind of the file system at path, and how many bytes this user can
// still write there.
func statFileSystem(path string) (kind uint32, free uint64, known bool, err error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(path, &st); err != nil {
		return 0, 0, false, err
	}
	// The fields have other types on other processors. Blocks are counted in
	// fragments where there are any.
	size := uint64(st.Frsize)
	if size == 0 {
		size = uint64(st.Bsize)
	}
	return uint32(st.Type), uint64(st.Bavail) * size, true, nil
}
