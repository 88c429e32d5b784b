import type { EventFields } from '../fields.ts'
import type { EventTable } from '../row.ts'

function documentProblem({ backend, reason = '', isServing }: EventFields['openapi_document']) {
  return {
    message: isServing
      ? `the OpenAPI document of backend ${backend} cannot be used, and the previous tools stay in use: ${reason}`
      : `backend ${backend} has no tools, because its OpenAPI document cannot be used: ${reason}`,
    fix: 'correct the document or its source; the document is read again automatically',
  }
}

export const openApiRows = {
  openapi_document: {
    message: ({ reason }) =>
      reason === undefined ? 'an OpenAPI document was read' : 'an OpenAPI document cannot be used',
    level: ({ reason }) => (reason === undefined ? 'info' : 'error'),
    isNews: true,
    condition: (fields) => ({
      id: `openapi_document/${fields.backend}`,
      backend: fields.backend,
      open: fields.reason === undefined ? undefined : documentProblem(fields),
    }),
  },
  openapi_response_mismatch: {
    message: 'a response of a REST service does not match its OpenAPI document',
    level: 'warn',
  },
} satisfies Partial<EventTable>
