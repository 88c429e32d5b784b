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

/** Maximum length of the settings in a problem, which is part of a report. */
const maxSettings = 512

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
  openapi_settings_unused: {
    message: ({ settings }) =>
      settings.length === 0
        ? 'all OpenAPI settings are in use'
        : 'OpenAPI settings match no operation of the document',
    level: ({ settings }) => (settings.length === 0 ? 'info' : 'warn'),
    condition: ({ backend, settings }) => ({
      id: `openapi_settings_unused/${backend}`,
      backend,
      open:
        settings.length === 0
          ? undefined
          : {
              message: `OpenAPI settings of backend ${backend} match no operation: ${settings.join('; ').slice(0, maxSettings)}`,
              fix: 'correct or remove the filters and overrides',
            },
    }),
  },
  openapi_response_unchecked: {
    message: 'a response of a REST service could not be compared with its OpenAPI document',
    level: 'warn',
  },
  openapi_response_mismatch: {
    message: 'a response of a REST service does not match its OpenAPI document',
    level: 'warn',
  },
} satisfies Partial<EventTable>
