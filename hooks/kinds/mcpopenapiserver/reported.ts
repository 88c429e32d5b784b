/**
 * Reads the reports of running virtual servers about a document at a URL. Reports come from pods, so every field is
 * checked. The name identifies the service, because only an MCPOpenAPIServer has a document.
 */
import { byText } from '../../../schemas/index.ts'
import { type Fields, isFields, listOf } from '../../base/kube.ts'
import type { SyncContext } from '../../sync/context.ts'
import { podReports } from '../virtualmcpserver/status/report.ts'

/** The state of a document according to the virtual servers. */
export interface ReportedDocument {
  readonly failure?: string
  /** Filters and overrides that match no operation. */
  readonly unused?: string
  readonly isInUse: boolean
}

/** Types of the problems in the reports. Source: runtime/observe/events/fields.ts. */
const failureType = 'openapi_document'
const unusedType = 'openapi_settings_unused'
const maxMessage = 1_024

export function reportedDocument(context: SyncContext<'MCPOpenAPIServer'>): ReportedDocument {
  const { name, spec, request } = context
  const reports = (request.related.get('ConfigMap.v1') ?? []).flatMap((map) => podReports(map))
  const entriesIn = (list: string): readonly Fields[] =>
    reports.flatMap((report) => listOf(report[list])).filter(isFields)
  const problemOf = (problemType: string): string | undefined =>
    entriesIn('problems')
      .filter(({ type, backend }) => type === problemType && backend === name)
      .flatMap(({ message }) => (typeof message === 'string' ? [message.slice(0, maxMessage)] : []))
      .toSorted(byText)[0]
  const failure = problemOf(failureType)
  const unused = problemOf(unusedType)
  // A server reports a known health only after it has read the document.
  const isInUse = entriesIn('backends').some(
    (backend) => backend['name'] === name && backend['url'] === spec.baseUrl && hasHealth(backend),
  )
  return { ...(failure !== undefined && { failure }), ...(unused !== undefined && { unused }), isInUse }
}

function hasHealth({ status }: Fields): boolean {
  return typeof status === 'string' && status !== 'unknown'
}
