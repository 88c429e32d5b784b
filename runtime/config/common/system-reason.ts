/** Why the system refused a file or folder, in words. */

const words: Readonly<Record<string, string>> = {
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  ENOENT: 'there is no such file',
  EISDIR: 'it is a folder',
  ENOSPC: 'the disk is full',
  EROFS: 'the file system is read-only',
  EDQUOT: 'the disk quota is used up',
  ENOTDIR: 'a part of the path is no folder',
  EEXIST: 'a file of that name is in the way',
  ELOOP: 'too many symbolic links',
}

/** Without the path, which the message has already. */
export function systemReason(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException
  return words[code ?? ''] ?? message
}
