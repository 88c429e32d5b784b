/** A file that the system does not let us write: a full disk, a read-only folder. */
import { ModuleError } from '../../../schemas/index.ts'

export class UnwritableFile extends ModuleError {
  constructor(folder: string, code: string) {
    super(`${folder} cannot be written (${code}); free space there, or set TMPDIR to another folder`)
  }
}

export function isSystemError(error: unknown): boolean {
  return error instanceof Error && 'syscall' in error && 'code' in error
}
