<?php
// Receives the webhooks of Rail: RAIL_WEBHOOK_SECRET=whsec_… php -S 127.0.0.1:4000 receiver.php

const TOLERANCE_S = 300;

/** Whether `Rail-Signature: t=…,v1=…[,v1=…]` signs this body, by the clock of this machine. */
function is_signed(string $header, string $body): bool
{
    // One for each endpoint, separated by commas.
    $secrets = explode(',', getenv('RAIL_WEBHOOK_SECRET'));
    $sent_at = '';
    $signatures = [];
    foreach (explode(',', $header) as $part) {
        [$name, $value] = array_pad(explode('=', $part, 2), 2, '');
        if ($name === 't') $sent_at = $value;
        if ($name === 'v1') $signatures[] = $value;
    }
    if (!preg_match('/^\d+$/D', $sent_at) || abs(time() - (int) $sent_at) > TOLERANCE_S) return false;
    foreach ($secrets as $secret) {
        $expected = hash_hmac('sha256', "$sent_at.$body", $secret);
        foreach ($signatures as $signature) {
            if (hash_equals($expected, $signature)) return true;
        }
    }
    return false;
}

// Exactly as it was sent: never parse and serialize it before it is verified.
$body = file_get_contents('php://input');
if (!is_signed($_SERVER['HTTP_RAIL_SIGNATURE'] ?? '', $body)) {
    http_response_code(400);
    return;
}
$event = json_decode($body, true);
// Ids of events that were handled. Keep them in your database, in the transaction that handles the event.
$handled = sys_get_temp_dir() . '/rail-handled-' . hash('sha256', $event['id']);
if ($file = @fopen($handled, 'x')) {
    fclose($file);
    file_put_contents('php://stdout', "{$event['type']} {$event['id']}\n");
}
http_response_code(204); // within ten seconds: leave long work to a job
