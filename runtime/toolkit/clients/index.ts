/**
 * Locates and parses MCP clients' files, converts their servers to manifests, and edits single entries. Pure: the
 * caller reads and writes the files.
 */
export { type ClientId, clientIds, clientRow, isClientId } from './catalog/clients.ts'
export type { Platform, FileScope } from './catalog/client-row.ts'
export { type Host, type Location, locationsOf } from './catalog/locations.ts'
export { connectionEntry, needsProgram } from './connect/entry.ts'
export { maskedDiff } from './connect/masked-diff.ts'
export { snippetOf } from './connect/snippet.ts'
export {
  type Conversion,
  type ConvertedEntry,
  convertEntries,
  type ConversionOutcome,
} from './convert/convert.ts'
export { type FolderFile, folderFiles } from './convert/folder.ts'
export { objectName } from './convert/names.ts'
export type { ConvertOptions } from './convert/options.ts'
export { parseDocument } from './document/document.ts'
export { isSecret, secretInUrl, tokenIn } from './convert/secrets.ts'
export { runnerImages } from './convert/server.ts'
export { quoteCommand } from './convert/server.ts'
export { decodeText, encodeText, type FileText, maxFileBytes } from './document/text.ts'
export { applyChanges, type TextChange, invertChanges } from './edit/changes.ts'
export { dropEntry, type Edit, type EditTarget, entryAt, putEntry } from './edit/edit.ts'
export { imageOf } from './entries/container.ts'
export { type ClientEntry, type EntryProgram, referencesOf } from './entries/entry.ts'
export { printableName } from './entries/members.ts'
export { packageName } from './entries/package.ts'
export { readEntries, serverMapKeys } from './entries/read.ts'
export type { Reference, Value } from './entries/value.ts'
