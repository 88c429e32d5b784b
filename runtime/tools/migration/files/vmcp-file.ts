/** The configuration file of a virtual server: ours has the same form, but for the names of a few values. */
import { type Fields, validateRuntime } from '../../../../schemas/index.ts'
import { MigrationDraft } from '../objects/draft.ts'
import { settle } from '../objects/object.ts'
import { convertVirtualServer } from '../objects/shared-rules.ts'

export function isVmcpFile(doc: Fields): boolean {
  if (doc['apiVersion'] !== undefined || doc['kind'] !== undefined) return false
  const sections = ['incomingAuth', 'outgoingAuth', 'aggregation', 'backends', 'operational']
  return ('groupRef' in doc || 'group' in doc) && sections.some((section) => section in doc)
}

export function convertVmcpFile(doc: Fields, tools: ReadonlyMap<string, string>): MigrationDraft {
  const draft = new MigrationDraft(doc)
  draft.rename('group', 'groupRef')
  convertVirtualServer(draft, '', tools)
  settle(draft, { violationsOf: (config) => validateRuntime('vmcp', config).violations })
  return draft
}
