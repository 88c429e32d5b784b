/** Describes why the system refused access to a file or folder. */

const words: Readonly<Record<string, string>> = {
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  ENOENT: 'file not found',
  EISDIR: 'is a directory',
  ENOSPC: 'the disk is full',
  EROFS: 'the file system is read-only',
  EDQUOT: 'the disk quota is exhausted',
  ENOTDIR: 'a part of the path is not a directory',
  EEXIST: 'a file with this name already exists',
  ELOOP: 'too many symbolic links',
}

/** Returns the reason without the path, which the message already contains. */
export function systemReason(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException
  return words[code ?? ''] ?? message
}
