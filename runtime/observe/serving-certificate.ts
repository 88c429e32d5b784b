/**
 * Opens the certificate for a server in this process and reports its events: reloaded, unusable, expiring within two
 * weeks, expired.
 */
import { type CertificateFiles, ServedCertificate } from '../../schemas/certificate/index.ts'
import type { Events } from './events/stream.ts'

const soonMs = 14 * 24 * 60 * 60_000

/**
 * Throws an INVALID_CONFIG error that lists all problems in the files. The caller closes the certificate, and calls
 * `checkFiles` after adding event listeners.
 */
export function openServingCertificate(files: CertificateFiles, events: Events): ServedCertificate {
  let reportedState = ''

  function reportEnd({ endsAt }: ServedCertificate): void {
    const now = Date.now()
    const ends = new Date(endsAt).toISOString()
    const expired = endsAt <= now
    const state = endsAt - now < soonMs ? `${ends} ${expired}` : ''
    if (state === reportedState) return
    reportedState = state
    events.emit('serving_certificate_expiring', state === '' ? {} : { ends, expired })
  }

  return new ServedCertificate(files, {
    onReloaded(now) {
      events.emit('serving_certificate_reloaded', { ends: new Date(now.endsAt).toISOString() })
      events.emit('serving_certificate_refused', {})
      reportEnd(now)
    },
    onUnusable: (reason) => events.emit('serving_certificate_refused', { reason }),
    onPoll: reportEnd,
  })
}
