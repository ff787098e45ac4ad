package filestore

import "syscall"

// statFileSystem looks at where the file at path is.
func statFileSystem(path string) (at fileSystem, known bool, err error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(path, &st); err != nil {
		return fileSystem{}, false, err
	}
	// The fields have other types on other processors. Blocks are counted in
	// fragments where there are any.
	size := uint64(st.Frsize)
	if size == 0 {
		size = uint64(st.Bsize)
	}
	return fileSystem{kind: uint32(st.Type), free: uint64(st.Bavail) * size}, true, nil
}
