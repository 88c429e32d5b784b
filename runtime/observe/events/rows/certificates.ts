/** The rows of events about certificates: the one that this server shows, and those that it trusts. */
import type { EventTable } from '../row.ts'

export const certificateRows = {
  certificate_expiring: {
    message: ({ ends, expired }) => {
      if (ends === undefined) return 'no certificate of the backend ends soon any more'
      return expired ? 'a certificate for a backend has ended' : 'a certificate for a backend ends soon'
    },
    level: ({ ends, expired }) => (ends === undefined ? 'info' : expired ? 'error' : 'warn'),
    condition: ({ backend, ends, expired }) => ({
      id: `certificate_expiring/${backend}`,
      backend,
      open:
        ends === undefined
          ? undefined
          : {
              message: `a certificate in the caBundle of backend ${backend} ${expired ? 'ended' : 'ends'} at ${ends}`,
              fix: `put the certificate that follows into the CA bundle of ${backend} (caBundleRef, caBundlePath, ca.crt of its TLS Secret) and take the old one out; the file is read again by itself`,
            },
    }),
  },
  serving_certificate_expiring: {
    message: ({ ends, expired }) => {
      if (ends === undefined) return 'the certificate of this server does not end soon any more'
      return expired ? 'the certificate of this server has ended' : 'the certificate of this server ends soon'
    },
    level: ({ ends, expired }) => (ends === undefined ? 'info' : expired ? 'error' : 'warn'),
    condition: ({ ends, expired }) => ({
      id: 'serving_certificate_expiring',
      open:
        ends === undefined
          ? undefined
          : {
              message: `the certificate of this server ${expired ? 'ended' : 'ends'} at ${ends}`,
              fix: 'renew it (spec.tls.secretName, --tls-cert-file and --tls-key-file); the new one is served without a restart',
            },
    }),
  },
  serving_certificate_reloaded: { message: 'a new certificate is served', level: 'info' },
  serving_certificate_refused: {
    message: ({ reason }) =>
      reason === undefined
        ? 'the certificate in the files can be served again'
        : 'the new certificate of this server cannot be used; the one before is served on',
    level: ({ reason }) => (reason === undefined ? 'info' : 'error'),
    condition: ({ reason }) => ({
      id: 'serving_certificate_refused',
      open:
        reason === undefined
          ? undefined
          : {
              message: `the new certificate of this server cannot be used; the one before is served on: ${reason}`,
              fix: 'correct the Secret of spec.tls.secretName, or the files of --tls-cert-file and --tls-key-file; they are read again by themselves',
            },
    }),
  },
} satisfies Partial<EventTable>
